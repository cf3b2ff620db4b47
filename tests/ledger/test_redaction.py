"""No secret is shown, in whatever spelling a library takes it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lapledger.ledger.redaction import redacted

PART = "hunter2"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("postgresql://me:hunter2@db/lap", "postgresql://***@db/lap"),
        ("postgresql://me:hunter2%40x@db/lap", "postgresql://***@db/lap"),
        ("postgresql://me:a@hunter2@db:5432/lap", "postgresql://***@db:5432/lap"),
        ("postgresql://me:a/hunter2@db/lap", "postgresql://***@db/lap"),
        ("postgresql://db/lap?user=me&password=hunter2", "postgresql://db/lap?user=me&password=***"),
        ("postgresql://db/lap?sslpassword=hunter2&x=1", "postgresql://db/lap?sslpassword=***&x=1"),
        ("postgresql://db/lap?passfile=/home/hunter2", "postgresql://db/lap?passfile=***"),
        ("host=db user=me password=hunter2 port=1", "host=db user=me password=*** port=1"),
        ("host=db password = 'hunter2 with \\' quote' port=1", "host=db password = *** port=1"),
        ("host=db PASSWORD=hunter2", "host=db PASSWORD=***"),
        ("me:hunter2@broker:9092,other:9092", "***@broker:9092,other:9092"),
        ("a:9092,me:hunter2@broker:9092", "a:9092,***@broker:9092"),
        ("sasl_plain_password='hunter2'", "sasl_plain_password=***"),
        ('{"sasl.password": "hunter2"}', '{"sasl.password": ***}'),
        ("AWS_SECRET_ACCESS_KEY=hunter2", "AWS_SECRET_ACCESS_KEY=***"),
        ("aws_session_token=hunter2", "aws_session_token=***"),
        ("s3://key:hunter2@bucket/x", "s3://***@bucket/x"),
    ],
)
def test_every_spelling_of_a_secret_is_hidden(text: str, shown: str) -> None:
    """URLs, libpq's keywords, broker lists, options of S3 and of Kafka."""
    assert redacted(text) == shown
    assert PART not in redacted(f"could not connect: {text}; check it")


@pytest.mark.parametrize(
    "text",
    [
        "token 1: expected '2.5', got '2.50000000'",
        "the broker refuses us; check the user, the password and its rights",
        "--set KEY=VALUE: no criterion key 'x'",
        "cut control=5,facts=4.0.0.4,requests=0",
        "mail to someone@example.org, or see https://example.org/a?b=c",
        "p/sums.1a2b/right.py:12: error",
        "kafka broker:9092,broker2:9092",
    ],
)
def test_what_is_no_secret_stays(text: str) -> None:
    """Messages and addresses without a secret are as they were."""
    assert redacted(text) == text


@given(
    st.text(
        st.characters(exclude_characters="\n", exclude_categories=("Zs", "Cc", "Zl", "Zp")), min_size=8, max_size=20
    )
)
def test_a_password_in_quotes_never_shows(secret: str) -> None:
    """Whatever it holds, escaped as libpq wants it."""
    escaped = secret.replace("\\", "\\\\").replace("'", "\\'")
    assert redacted(f"host=db password='{escaped}' port=5432") == "host=db password=*** port=5432"
