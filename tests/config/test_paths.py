from sealgate.config.names import dotted, variable


def test_a_path_as_toml_writes_it() -> None:
    assert dotted(("keys", "main", "secret")) == "keys.main.secret"
    assert dotted(("routes", 0, "match")) == "routes[0].match"
    assert dotted(("keys", "a b", "secret")) == 'keys."a b".secret'


def test_a_path_as_the_environment_writes_it() -> None:
    assert variable(("base_url",)) == "SEALGATE_BASE_URL"
    assert variable(("keys", "main", "api_key")) == "SEALGATE_KEYS__MAIN__API_KEY"
