# SPDX-License-Identifier: GPL-2.0-or-later
"""Mutants of functions, views, names and remembered results."""

from __future__ import annotations

from tests.mutants.mutant import mutant

FUNCTION_MUTANTS = (
    # ---- functions: stages, checks, what they made ----
    mutant(
        "the length behind functions is that behind the first one",
        "target/function/stack.c",
        "	for (size_t i = 0; *ret_known && i < stack->count; i++) {",
        "	for (size_t i = 0; *ret_known && i < stack->count && i < 1; i++) {",
        *("tests/exec/test_views.py", "-k", "length"),
    ),
    mutant(
        "a later object with the id of a source is the source",
        "target/function/stack.c",
        "created_msec && created_msec == source->created_msec ?",
        "created_msec ?",
        *("tests/exec/test_views.py", "-k", "later_object"),
    ),
    mutant(
        "a chain of views is as writable as its last source",
        "target/function/stack.c",
        "stack->writable &= level.source.writable;",
        "stack->writable = level.source.writable;",
        *("tests/exec/test_views.py", "-k", "must_be_writable"),
    ),
    mutant(
        "a view of a collection keeps an object that has left it",
        "target/object/view_follow.c",
        ": osd_view_remove_from(txn, &list.entries[i], source);",
        ": OSD_OK;",
        *("tests/exec/test_view_parts.py", "-k", "has_the_members"),
    ),
    mutant(
        "the first function that permits a change decides",
        "target/command/check.c",
        "		check->asked++;",
        "		check->asked = check->count;",
        *("tests/exec/test_checks.py", "-k", "all_levels"),
    ),
    mutant(
        "what was permitted may be done to another version",
        "target/command/check.c",
        "if (request->checked->versioned)",
        "if (false)",
        *("tests/exec/test_checks.py", "-k", "two_writers"),
    ),
    mutant(
        "what one stack made is read through another",
        "target/function/kept.c",
        "memcmp(unit->key.stack, key->stack, sizeof(key->stack)) == 0;",
        "true;",
        *("tests/sanitize/test_units.py", "-k", "test_kept and sanitized"),
    ),
    mutant(
        "a result may lie beyond the room that is shared with the sandbox",
        "target/exec/session/data.c",
        "|| end > OSD_SHM_PLACES_BYTES) {",
        "|| place > OSD_SHM_PLACES_BYTES) {",
        *("tests/sanitize/test_units.py", "-k", "test_proxy_frames and sanitized"),
    ),
    mutant(
        "a sandbox that was kept serves another principal",
        "target/exec/sandbox/reuse.c",
        "kept_for && strcmp(kept_for, principal) == 0 &&",
        "kept_for && principal &&",
        *("tests/sanitize/test_units.py", "-k", "test_reuse and sanitized"),
    ),
    mutant(
        "what a script writes through functions is stored though it may no longer",
        "target/exec/session/through.c",
        "	return status == OSD_OK ? osd_session_check_object(session, data->id) : status;",
        "	return status;",
        *("tests/exec/test_script_data.py", "-k", "leaves_the_zone"),
    ),
    # ---- names ----
    mutant(
        "a directory moves to two levels below itself",
        "target/object/names.c",
        "		*ret_below = found && place.object_id == other.object_id;\n",
        "		*ret_below = found && place.object_id == other.object_id;\n		break;\n",
        *("tests/command/test_names.py", "-k", "test_rename"),
    ),
    mutant(
        "a credential of a directory gives names to what is outside",
        "target/command/cmd_names.c",
        "	if (naming->from.object_id != 0 || id < OSD_FIRST_ID)",
        "	if (id < OSD_FIRST_ID)",
        *("tests/security/test_names.py", "-k", "attempts_to_leave"),
    ),
    mutant(
        "an object in any directory is in the zone of a directory",
        "target/object/name_inside.c",
        "		status = go_up(txn, above, directory, &passed, ret_inside);",
        "		status = go_up(txn, above, directory, &passed, ret_inside);\n"
        "		*ret_inside = true;",
        *("tests/exec/test_paths.py",),
    ),
    # ---- results that are remembered ----
    mutant(
        "a remembered result serves another principal",
        "target/exec/remembered.c",
        "	osd_sha256_add(&sha, record->principal, strlen(record->principal) + 1);\n",
        "",
        *("tests/exec/test_rights.py", "-k", "remembered"),
    ),
    mutant(
        "a remembered result serves another pool",
        "target/exec/remembered.c",
        "	osd_sha256_add(&sha, record->pool, strlen(record->pool) + 1);\n",
        "",
        *("tests/exec/test_pools.py", "-k", "remembered"),
    ),
    mutant(
        "a remembered result needs the rights of the earlier job",
        "target/exec/remembered.c",
        ".rights = earlier->wanted->rights,",
        ".rights = earlier->record.rights,",
        *("tests/exec/test_rights.py", "-k", "remembered"),
    ),
    mutant(
        "a remembered result serves a zone of another type",
        "target/exec/remembered.c",
        "	return status == OSD_OK && type != zone->type ? OSD_E_NO_OBJECT : status;",
        "	return status;",
        *("tests/exec/test_remembered.py", "-k", "made_again"),
    ),
    mutant(
        "a remembered result serves other arguments",
        "target/exec/acceptance.c",
        "	osd_sha256_add(&sha, submission->args.bytes, submission->args.length);\n",
        "",
        *("tests/exec/test_remembered.py", "-k", "makes_a_difference"),
    ),
    mutant(
        "what functions made is remembered when they have gone",
        "target/exec/session/through.c",
        "data->available);\n	osd_used_note(&op->session->used, data->id, OSD_USED_VARIED);",
        "data->available);",
        *("tests/exec/test_script_data.py", "-k", "functions_made"),
    ),
)
