"""`python -m replispec.cli` is `replispec`."""

from replispec.cli.main import main

if __name__ == "__main__":
    main()
