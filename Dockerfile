# One image for every part: the web (default command), workers, beat. Not built as root's: the
# studio needs no right but its home in /data.

FROM python:3.11-slim-bookworm AS builder
ENV PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_ROOT_USER_ACTION=ignore
RUN python -m venv /venv
COPY requirements.txt .
# pip has done its work then: nothing is installed into a running container.
RUN /venv/bin/pip install --requirement requirements.txt \
    && /venv/bin/pip uninstall --yes pip setuptools

FROM python:3.11-slim-bookworm AS runtime
ENV PATH=/venv/bin:$PATH PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1 MEMORY_STUDIO_HOME=/data
RUN useradd --uid 10001 --no-create-home --shell /usr/sbin/nologin studio \
    && install --directory --owner=studio --group=studio --mode=700 /data
COPY --from=builder /venv /venv
WORKDIR /app
COPY . .
# Compiled once: the root of a container may be read-only.
RUN python -m compileall -q /app
USER studio
VOLUME /data
EXPOSE 8765
HEALTHCHECK --interval=15s --timeout=5s --start-period=60s --retries=4 \
    CMD ["python", "-m", "memstudio.probe"]
CMD ["python", "manage.py", "studio", "--host", "0.0.0.0"]
