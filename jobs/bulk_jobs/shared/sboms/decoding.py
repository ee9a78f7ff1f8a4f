"""JSON of bills, decoded by type."""

from typing import TypeVar

import msgspec

from bulk_jobs.shared.sboms.bill import BillFlaw

T = TypeVar("T")


def decode(decoder: "msgspec.json.Decoder[T]", data: bytes, form: str) -> T:
    """Return the decoded `data`; `form`: the expected form, for the message.

    Raises:
        BillFlaw: the data can't be read, or a field that is needed has another type.
    """
    try:
        return decoder.decode(data)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise BillFlaw(f"is not {form} that can be read: {error}") from None
