"""Settings of the engines, which read them when they are imported."""

import os

# Nothing is fetched or reported; one gigabyte of cached keys and values is plenty.
os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("VLLM_NO_USAGE_STATS", "1")
os.environ.setdefault("VLLM_CPU_KVCACHE_SPACE", "1")
