"""What all tests share."""

from hypothesis import HealthCheck, settings

# A loaded machine makes examples slow without making them wrong: no test may fail on time.
settings.register_profile(
    "house", deadline=None, suppress_health_check=[HealthCheck.too_slow], print_blob=True
)
settings.load_profile("house")
