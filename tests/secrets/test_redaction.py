"""Secrets in text that people pass in clear are recognized, and known values are masked."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runyard.spec.redaction import MASK, Redactor, argument_spans, mask_label, mask_text, mask_variable, secret_spans

TOKEN = "A1b2C3d4E5f6G7h8I9j0K1l2"


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        ("postgres://ana:pw@db.local/runs", "postgres://ana:***@db.local/runs"),
        ("redis://:p%40ss@cache:6379/0", "redis://:***@cache:6379/0"),
        ("mongodb+srv://u:p@ss@host/x", "mongodb+srv://u:***@host/x"),
        (f"https://{TOKEN}@github.com/a/b.git", "https://***@github.com/a/b.git"),
        ("AccountName=a;AccountKey=Zm9vYmFy==;EndpointSuffix=x", "AccountName=a;AccountKey=***;EndpointSuffix=x"),
        ("Endpoint=sb://x/;SharedAccessSignature=sr%3D1", "Endpoint=sb://x/;SharedAccessSignature=***"),
        ("host=db user=ana password=hunter2", "host=db user=ana password=***"),
        ("https://a.blob.net/c/f?sv=2020&sig=abc%3D&se=1", "https://a.blob.net/c/f?sv=2020&sig=***&se=1"),
        ("Authorization: Bearer abcdefgh12345678", "Authorization: Bearer ***"),
        (f"hf_{TOKEN}", "***"),
        (f"key ghp_{TOKEN} end", "key *** end"),
        (f"github_pat_{TOKEN}", "***"),
        (f"glpat-{TOKEN}", "***"),
        (f"sk-proj-{TOKEN}", "***"),
        (f"sk-ant-api03-{TOKEN}-xyz", "***"),
        ("AKIAIOSFODNN7EXAMPLE", "***"),
        ("xoxb-123456789012-abcdef", "***"),
        ("eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.c2lnbmF0dXJl", "***"),
        ("-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----\n", "***\n"),
    ],
)
def test_secrets_in_text_are_masked(text: str, masked: str) -> None:
    assert mask_text(text) == masked
    assert mask_text(masked) == masked


@pytest.mark.parametrize(
    "text",
    [
        "0.001",
        "s3://bucket/data",
        "http://host:8080/path?mail=a@b.c",
        "sk-learn-random-forest-v2",
        "ssh://git@github.com/a/b",
        "postgres://ana:$DB_PASSWORD@db/runs",
        "a" * 40,
        "outputs/model_hf_base.pt",
        "cross_validation=True",
    ],
)
def test_ordinary_text_is_unchanged(text: str) -> None:
    assert mask_text(text) == text


@pytest.mark.parametrize(
    "name", ["HF_TOKEN", "WANDB_API_KEY", "PGPASSWORD", "AWS_SECRET_ACCESS_KEY", "MYSQL_PWD", "token"]
)
def test_variables_with_the_name_of_a_secret_are_masked(name: str) -> None:
    assert mask_variable(name, "opensesame") == MASK


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("TOKENIZERS_PARALLELISM", "false"),
        ("PWD", "/home/ana"),
        ("USE_TOKEN", "true"),
        ("N_KEY", "12"),
        ("A_KEY", "$B"),
    ],
)
def test_ordinary_variables_are_unchanged(name: str, value: str) -> None:
    assert mask_variable(name, value) == value


def test_values_of_options_for_secrets_are_found() -> None:
    arguments = ["--token", "opensesame", "--password=hunter2", "model.api_key=abcd", "--lr", "0.1"]
    assert argument_spans(arguments) == {1: [(0, 10)], 2: [(11, 18)], 3: [(14, 18)]}


def test_options_with_similar_names_are_not_secrets() -> None:
    assert (
        argument_spans(["--pad-token", "<pad>", "--sort-key", "loss", "--tokenizer", "bert", "--token", "--lr"]) == {}
    )


def test_tags_and_parameters_are_masked_by_value_and_by_name() -> None:
    assert mask_label("url", "mysql://u:pw@h/d") == "mysql://u:***@h/d"
    assert mask_label("api_key", "abcdef") == MASK
    assert mask_label("note", "a key") == "a key"
    assert mask_label("empty", None) is None


def test_known_values_are_masked_where_they_are_quoted_or_split() -> None:
    redactor = Redactor(['first "line"\nsecond line 2', "a/b c"])
    assert redactor.text("ValueError('first \"line\"\\nsecond line 2')") == "ValueError('***')"
    assert redactor.text('{"x": "first \\"line\\"\\nsecond line 2"}') == '{"x": "***"}'
    assert redactor.text("only second line 2 is here") == "only *** is here"
    assert redactor.text("GET /?q=a%2Fb%20c") == "GET /?q=***"
    assert redactor.json({"a": ["x a/b c", 1, None]}) == {"a": ["x ***", 1, None]}


def test_values_that_are_too_short_are_not_masked() -> None:
    assert Redactor(["1", "ab"]).text("1 ab 11") == "1 ab 11"


@given(st.text(max_size=200))
def test_any_text_can_be_searched(text: str) -> None:
    for start, end in secret_spans(text):
        assert 0 <= start < end <= len(text)


@pytest.mark.parametrize("unit", ["eyJ", "://:", "hf_", "sk-a-", "password=", "-----BEGIN PRIVATE KEY-----", "a://b:"])
def test_long_text_can_be_searched(unit: str) -> None:
    """With a pattern that needs quadratic time, the test would time out."""
    mask_text(unit * (500_000 // len(unit)))
