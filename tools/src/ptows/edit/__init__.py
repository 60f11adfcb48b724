"""Changing single values of YAML and TOML files in place: comments, order and quoting stay."""
