"""Repository contents: files and directories, read and written."""
