"""What a document cannot say of requests, so that those that should be taken can be."""

import json
import os

import schemathesis
from schemathesis import GenerationMode

KNOWN = json.loads(os.environ["KORTYX_TEST_KNOWN"])

# Integers that survive in JSON. Fields that the document does not name may hold any.
SMALLEST, LARGEST = -(2**63), 2**64 - 1


def readable(value):
    if isinstance(value, int) and not isinstance(value, bool) and not SMALLEST <= value <= LARGEST:
        return str(value)
    if isinstance(value, list):
        return [readable(item) for item in value]
    if isinstance(value, dict):
        return {key: readable(item) for key, item in value.items()}
    return value


@schemathesis.hook
def before_call(context, case, kwargs):
    case.body = readable(case.body)
    if case.meta is None or case.meta.generation.mode != GenerationMode.POSITIVE:
        return
    # Only the server makes cursors.
    if "cursor" in (case.query or {}):
        case.query["cursor"] = KNOWN["cursors"][0]
    # A link is signed as a whole.
    link = KNOWN["links"].get((case.path_parameters or {}).get("id"))
    if link is not None:
        case.query = dict(link)
