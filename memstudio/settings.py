"""Settings of the project, grouped by subsystem. Every default runs offline in one process.

The environment is read here and in ``memstudio.home`` only, always through ``memstudio.env``.
"""

from __future__ import annotations

from pathlib import Path

from django.utils.translation import gettext_lazy as _

from memstudio import database, env, home, log, providers, quiet, redis
from memstudio.errors import StartError

quiet.apply()

# Home and secrets

BASE_DIR = Path(__file__).resolve().parent.parent
MEMORY_STUDIO_HOME = home.prepare(home.locate(BASE_DIR))
SECRET_KEY = home.django_key(MEMORY_STUDIO_HOME)
ENCRYPTION_KEY = home.encryption_key(MEMORY_STUDIO_HOME)

# Application

DEBUG = env.flag("MEMORY_STUDIO_DEBUG", False)
INSTALLED_APPS = [
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.staticfiles",
    "django_htmx",
    "template_partials",
    "ninja",
    "memory",
    "memstudio",
]
MIDDLEWARE = [
    "memory.observing.Observing",
    "memory.api.errors.ApiErrors",
    "memory.compat.errors.CompatErrors",
    "django.middleware.security.SecurityMiddleware",
    "memstudio.csp.ContentSecurityPolicy",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "memstudio.uncached.Uncached",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.locale.LocaleMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
]
ROOT_URLCONF = "memstudio.urls"
WSGI_APPLICATION = "memstudio.wsgi.application"
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.template.context_processors.i18n",
                "django.contrib.auth.context_processors.auth",
            ],
        },
    },
]

# Database

DATABASES = {"default": database.default(MEMORY_STUDIO_HOME, env.secret("DATABASE_URL") or "")}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

# Serving

ALLOWED_HOSTS = ["127.0.0.1", "localhost", "[::1]", *env.texts("MEMORY_STUDIO_ALLOWED_HOSTS")]
CSRF_TRUSTED_ORIGINS = env.texts("MEMORY_STUDIO_TRUSTED_ORIGINS")
MEMORY_STUDIO_THREADS = env.integer("MEMORY_STUDIO_THREADS", 8, low=1, high=64)
MEMORY_STUDIO_MAX_BODY_BYTES = env.integer("MEMORY_STUDIO_MAX_BODY_BYTES", 64 * 2**20, low=1024)
# The bridge has already refused what is too large, and a body above this is read from a file.
DATA_UPLOAD_MAX_MEMORY_SIZE = MEMORY_STUDIO_MAX_BODY_BYTES
FILE_UPLOAD_MAX_MEMORY_SIZE = 2**20

# Security

MEMORY_STUDIO_HTTPS = env.flag("MEMORY_STUDIO_HTTPS", False)
if MEMORY_STUDIO_HTTPS:
    SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = MEMORY_STUDIO_HTTPS
SESSION_COOKIE_NAME = "memory_studio_session"
SESSION_COOKIE_HTTPONLY = True
SESSION_COOKIE_SAMESITE = "Lax"
CSRF_COOKIE_NAME = "memory_studio_csrf"
CSRF_COOKIE_HTTPONLY = True
CSRF_COOKIE_SAMESITE = "Lax"
SECURE_CONTENT_TYPE_NOSNIFF = True
SECURE_REFERRER_POLICY = "same-origin"
X_FRAME_OPTIONS = "DENY"

# Signing in

LOGIN_URL = "/signin/"
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": f"django.contrib.auth.password_validation.{name}"}
    for name in (
        "UserAttributeSimilarityValidator",
        "MinimumLengthValidator",
        "CommonPasswordValidator",
        "NumericPasswordValidator",
    )
]

# Languages and time

LANGUAGE_CODE = "en"
LANGUAGES = [("en", _("English")), ("ja", _("Japanese")), ("zh-hans", _("Simplified Chinese"))]
LANGUAGE_COOKIE_NAME = "memory_studio_language"
LANGUAGE_COOKIE_AGE = 365 * 24 * 3600
LANGUAGE_COOKIE_HTTPONLY = True
LANGUAGE_COOKIE_SAMESITE = "Lax"
LOCALE_PATHS = [BASE_DIR / "locale"]
USE_I18N = True
USE_TZ = True
TIME_ZONE = env.text("MEMORY_STUDIO_TIME_ZONE", "UTC")

# Static files: served from where they lie; browsers ask each time, so an upgrade is seen at once

STATIC_URL = "/static/"
STATICFILES_DIRS = [BASE_DIR / "static"]
WHITENOISE_USE_FINDERS = True
WHITENOISE_AUTOREFRESH = DEBUG
WHITENOISE_MAX_AGE = 0

# Redis: a cache that all processes share, and the broker where none is named

REDIS_URL = redis.url("REDIS_URL")
CACHES = {"default": redis.cache(REDIS_URL)}

# Jobs

CELERY_BROKER_URL = env.secret("CELERY_BROKER_URL") or REDIS_URL or "memory://"
MEMORY_STUDIO_EMBEDDED_WORKER = CELERY_BROKER_URL.startswith("memory:")
# A message carries only the id of a Job row: a lost one is sent again by the sweep. On Redis the
# defaults hold back the jobs of a killed worker for an hour.
CELERY_BROKER_TRANSPORT_OPTIONS = (
    {"polling_interval": 0.02}
    if MEMORY_STUDIO_EMBEDDED_WORKER
    else {"visibility_timeout": 10, "unacked_restore_interval": 1, "unacked_restore_throttle": 1}
)
# Keys of sealed vaults live in one process: this one, or the one that the webs pass requests to.
MEMORY_STUDIO_KEEPS_VAULTS = env.flag(
    "MEMORY_STUDIO_KEEPS_VAULTS",
    MEMORY_STUDIO_EMBEDDED_WORKER and DATABASES["default"]["ENGINE"].endswith("sqlite3"),
)
MEMORY_STUDIO_VAULTD = env.origin("MEMORY_STUDIO_VAULTD")
if MEMORY_STUDIO_VAULTD and MEMORY_STUDIO_KEEPS_VAULTS:
    raise StartError(
        "This process keeps the keys of vaults itself (it is the studio on SQLite, or "
        "MEMORY_STUDIO_KEEPS_VAULTS is set): leave MEMORY_STUDIO_VAULTD out."
    )
MEMORY_STUDIO_VAULT_MEMORY_MIB = env.integer(
    "MEMORY_STUDIO_VAULT_MEMORY_MIB", 64, low=19, high=1024
)
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
CELERY_BROKER_CONNECTION_MAX_RETRIES = None
CELERY_TASK_DEFAULT_QUEUE = "interactive"
CELERY_TASK_ACKS_LATE = True
CELERY_TASK_REJECT_ON_WORKER_LOST = True
CELERY_TASK_IGNORE_RESULT = True
CELERY_TASK_SERIALIZER = "json"
CELERY_ACCEPT_CONTENT = ["json"]
# Threads share one model and one index; processes would each load their own.
CELERY_WORKER_POOL = "threads"
CELERY_WORKER_CONCURRENCY = env.integer("MEMORY_STUDIO_WORKER_THREADS", 4, low=1, high=64)
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
CELERY_WORKER_CANCEL_LONG_RUNNING_TASKS_ON_CONNECTION_LOSS = False
CELERY_WORKER_HIJACK_ROOT_LOGGER = False
CELERY_TIMEZONE = TIME_ZONE
# For workers of their own; the one-process studio has its ticker. Both rounds may be run by many
# at once, and one that was missed comes again: the schedule is kept nowhere.
CELERY_BEAT_SCHEDULER = "celery.beat:Scheduler"
CELERY_BEAT_SCHEDULE = {
    "sweep": {"task": "memory.sweep", "schedule": 30.0, "options": {"expires": 30}},
    "cleanup": {
        "task": "memory.cleanup",
        "schedule": 300.0,
        "options": {"expires": 300, "queue": "bulk"},
    },
}

# Retrieval: names and defaults of the first seed

MEMORY_LOCAL_SOURCES = {
    "all-minilm-l6-v2-int8": "memory.local_sources.all_minilm_l6_v2_int8",
    "multilingual-e5-small": "memory.local_sources.multilingual_e5_small",
    "use-multilingual": "memory.local_sources.use_multilingual",
}
MEMORY_RRF_K = env.integer("MEMORY_RRF_K", 60, low=1)
MEMORY_STUDIO_PGVECTOR_QUANTIZATION = env.choice(
    "MEMORY_STUDIO_PGVECTOR_QUANTIZATION", "none", ("none", "int8", "binary")
)
MEMORY_VEC_TOP_K = env.integer("MEMORY_VEC_TOP_K", 100, low=1, high=1000)
MEMORY_EMBEDDING_CACHE_MAX = env.integer("MEMORY_EMBEDDING_CACHE_MAX", 1000, low=0)
MEMORY_EMBEDDING_CACHE_TTL_MS = env.integer("MEMORY_EMBEDDING_CACHE_TTL_MS", 300_000, low=0)
MEMORY_TRANSFORMERS_MODEL = env.text("MEMORY_TRANSFORMERS_MODEL")
MEMORY_STATIC_MODEL = env.text("MEMORY_STATIC_MODEL")
MEMORY_STATIC_CACHE_DIR = env.text("MEMORY_STATIC_CACHE_DIR")
MEMORY_STUDIO_VAULT_ROOTS = env.texts("MEMORY_STUDIO_VAULT_ROOTS")
MEMORY_TYPED_DECAY = env.prefixed("MEMORY_TYPED_DECAY_")

# Providers that are set up outside of the studio

MEMORY_STUDIO_PROVIDER_FIELDS = providers.from_environment()
MEMORY_STUDIO_PROVIDERS = providers.from_file(MEMORY_STUDIO_HOME)

# Watching

OTEL_SERVICE_NAME = env.text("OTEL_SERVICE_NAME", "memory-studio")
MEMORY_STUDIO_TRACING = env.traces()
MEMORY_STUDIO_METRICS_TOKEN = env.secret("MEMORY_STUDIO_METRICS_TOKEN") or ""

# Log

LOGGING = log.config(
    env.choice("MEMORY_STUDIO_LOG_LEVEL", "INFO", ("DEBUG", "INFO", "WARNING", "ERROR"))
)
