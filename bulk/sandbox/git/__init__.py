"""The repositories of a sandbox: real git repositories on disk, and generated ones."""
