# An image that runs `bulk` as a user without rights, compiled. Build it in a clone: docker build --tag bulk .

FROM python:3.13-slim AS build
RUN apt-get update && apt-get install --yes --no-install-recommends gcc libc6-dev
WORKDIR /source
COPY pyproject.toml hatch_build.py constraints.txt README.md LICENSE ./
COPY bulk bulk
COPY jobs jobs
RUN python -m venv /opt/bulk \
    && BULK_COMPILE=1 /opt/bulk/bin/python -m pip install --no-cache-dir --constraint constraints.txt '.[speed,app,audit,notify,cluster]'

FROM python:3.13-slim
COPY --from=build /opt/bulk /opt/bulk
RUN useradd --uid 10001 --create-home bulk && install --directory --owner bulk --group bulk /srv/bulk /srv/bulk/runs
ENV PATH=/opt/bulk/bin:$PATH
USER 10001
WORKDIR /srv/bulk
ENTRYPOINT ["bulk"]
CMD ["--help"]
