"""Our roles among other people's programs: scenarios of a family, each of which says what it measured."""
