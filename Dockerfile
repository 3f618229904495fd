# The first stage installs from the lock; the second has the result and no compiler, no lock, no sources.
FROM python:3.13-slim AS build
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1
RUN python -m venv /opt/sealgate
WORKDIR /build
# The lock before the sources, so that a change of the sources does not install everything again.
COPY deploy/requirements.txt deploy/
RUN /opt/sealgate/bin/pip install --require-hashes -r deploy/requirements.txt
COPY pyproject.toml README.md LICENSE ./
COPY src src
RUN /opt/sealgate/bin/pip install --no-deps --no-build-isolation .

FROM python:3.13-slim
ENV PYTHONUNBUFFERED=1
COPY --from=build /opt/sealgate /opt/sealgate
# A number, so that Kubernetes can see that it is not root.
USER 10001:10001
EXPOSE 8787 8788
HEALTHCHECK --interval=10s --timeout=5s --start-period=15s CMD ["/opt/sealgate/bin/sealgate", "healthcheck"]
ENTRYPOINT ["/opt/sealgate/bin/sealgate", "serve"]
