"""Why a model could not be installed."""

from __future__ import annotations

from engine.errors import EngineError


class InstallFailed(EngineError):
    """A model was not installed; what was downloaded so far is kept unless it is wrong.

    Codes: ``model_file_mismatch`` (a file that is already there is another one),
    ``model_hash_mismatch``, ``range_mismatch``, ``response_too_large``, ``unsafe_redirect``,
    ``url_blocked``, ``timeout``, ``terms_not_accepted``, ``disk_full``, ``write_failed``, ``busy``,
    ``packaged_model``, ``model_not_installed``, and those of ``HttpFailed``.
    """

    code = "install_failed"
