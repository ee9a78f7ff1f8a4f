"""A run in virtual time: the real scheduler, workers, governor and recorder against a model of the platform.

`virtual_time.py` is the clock, `model_platform.py` answers instead of the platform, `shaped_operations.py` asks as the
operations do without knowing their answers, and `rehearse.py` puts them together and says what came out.
"""
