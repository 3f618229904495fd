# The first stage installs from the lock and compiles; the second has the result and no compiler, no lock, no sources.
# It is the same Python on the same Debian with a C compiler.
FROM python:3.13.11-trixie AS build
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1
WORKDIR /build
# Without pip inside: what runs later has no need to install anything. The owner of /state below is handed on to a
# volume that is mounted there for the first time.
RUN python -m venv --without-pip /opt/sealgate && mkdir /state
# The locks before the sources, so that a change of the sources does not install everything again. The compiler, mypyc,
# reads the types of all that is imported, but is no part of the environment.
COPY deploy/requirements.txt deploy/requirements-compile.txt deploy/
RUN pip --python /opt/sealgate/bin/python install --require-hashes -r deploy/requirements.txt \
    && pip --python /opt/sealgate/bin/python install --target tools \
        --require-hashes -r deploy/requirements-compile.txt
COPY pyproject.toml hatch_build.py README.md LICENSE ./
COPY deploy/man deploy/man
COPY src src
# What only debuggers need of the compiled modules is a quarter of the image.
RUN HATCH_BUILD_HOOK_ENABLE_CUSTOM=true PYTHONPATH=/build/tools \
    pip --python /opt/sealgate/bin/python install --no-deps --no-build-isolation . \
    && find /opt/sealgate -name '*.so' -exec strip --strip-unneeded {} +

FROM python:3.13.11-slim-trixie
# The root may be read-only: nothing is written but /var/lib/sealgate and /tmp.
ENV PATH=/opt/sealgate/bin:$PATH PYTHONDONTWRITEBYTECODE=1
COPY --from=build /opt/sealgate /opt/sealgate
COPY --from=build --chown=10001:10001 --chmod=0700 /state /var/lib/sealgate
# A sealgate.toml that is mounted here is found without further ado.
WORKDIR /etc/sealgate
# A number, so that Kubernetes can see that it is not root.
USER 10001:10001
EXPOSE 8787 8788
# Whether it runs: an exchange that is away is no reason to restart it.
HEALTHCHECK --interval=10s --timeout=6s --start-period=15s CMD ["/opt/sealgate/bin/sealgate", "healthcheck", "--live"]
ENTRYPOINT ["/opt/sealgate/bin/sealgate"]
CMD ["serve"]
