"""Models that write text, behind the seam ``TextGenerator``."""
