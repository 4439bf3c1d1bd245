# SPDX-License-Identifier: GPL-2.0-or-later
"""The mutants: one small change each, and the tests of the gate that must fail on it."""

from __future__ import annotations

from tests.mutants.functions import FUNCTION_MUTANTS
from tests.mutants.mutant import Mutant, mutant

__all__ = ["MUTANTS", "Mutant"]

WITHOUT_SANITIZERS = ("--units", "bdb,memory")

POLICY_TESTS = ("tests/host/test_policy.py", "tests/host/test_policy_properties.py")

COPIES_TESTS = ("tests/client/test_upkeep.py",)

MUTANTS = (
    *FUNCTION_MUTANTS,
    # ---- backups ----
    mutant(
        "a frozen store still takes data",
        "target/store/freeze.c",
        "	atomic_store(&freeze->held, true);",
        "	atomic_store(&freeze->held, false);",
        *("tests/sanitize/test_units.py", "-k", "test_freeze and sanitized"),
    ),
    mutant(
        "a frozen store still takes transactions",
        "target/store/freeze.c",
        "	while (atomic_load(&freeze->on)) {\n		osd_freeze_leave",
        "	while (false) {\n		osd_freeze_leave",
        *("tests/sanitize/test_units.py", "-k", "test_freeze and sanitized"),
    ),
    mutant(
        "a backup does not copy what changed while it copied",
        "iosd_host/store_tools/backup/make.py",
        "            copier.run(still=True, names=watcher.changed())",
        "            copier.run(still=True, names=())",
        *("tests/offline/test_backup_served.py", "-k", "moment"),
    ),
    # ---- checksums ----
    mutant(
        "old checksums stay while the bytes change",
        "target/store/sums_data.c",
        "		status = osd_sums_forget(file, change->first, change->end);",
        "		status = file ? OSD_OK : osd_sums_forget(file, change->first, change->end);",
        *("tests/sanitize/test_units.py", "-k", "sums and sanitized"),
    ),
    mutant(
        "a write of a part makes a damaged block good",
        "target/store/sums_data.c",
        "		*ret_sum = osd_sums_wrong(*ret_sum);",
        "		*ret_sum = *ret_sum;",
        *("tests/command/test_checksums.py", "-k", "stays"),
    ),
    mutant(
        "checksums of before a power failure hold",
        "target/store/sums_file.c",
        "			   (header.is_sealed || header.epoch == epoch);",
        "			   (header.is_sealed || header.epoch <= epoch);",
        *("tests/offline/test_checksums.py", "-k", "power"),
    ),
    mutant(
        "the scrub passes over the object at which it was stopped",
        "target/object/scrub.c",
        "		if (must_end(objects) || !look_at(objects, &scan.found[i], pass))",
        "		look_at(objects, &scan.found[i], pass);\n		if (false)",
        *("tests/command/test_checksums.py", "-k", "restart"),
    ),
    # ---- durability ----
    mutant(
        "a commit stays in the process's memory",
        "target/store/attr_bdb.c",
        "[OSD_KV_COMMIT_PROCESS] = DB_TXN_WRITE_NOSYNC,",
        "[OSD_KV_COMMIT_PROCESS] = DB_TXN_NOSYNC,",
        *("tests/fault/test_crash_harness.py", "--crash-rounds=20"),
    ),
    mutant(
        "a flush does not reach the disk",
        "target/store/file_store.c",
        "	return result(fdatasync(fd_of(file)));",
        "	(void)file;\n	return OSD_OK;",
        *("tests/fault/test_flush.py",),
    ),
    mutant(
        "a flush after a failed one succeeds",
        "target/object/data.c",
        "	if (osd_unsynced_by(status))\n		note_unsynced(object, status);\n",
        "	(void)note_unsynced;\n",
        *("tests/tiers/test_failures.py", "-k", "flush"),
    ),
    mutant(
        "a sync of the database after a failed one succeeds",
        "target/store/attr_bdb.c",
        "		atomic_store(&sync_failed, true);\n",
        "",
        *("tests/fault/test_flush.py", "-k", "log_failed"),
    ),
    mutant(
        "the name of a tail is not synced",
        "target/store/tier.c",
        "		if (tail && create && status == OSD_OK) /* before another thread finds it open */",
        "		if (false)",
        *("tests/sanitize/test_units.py", "-k", "test_flush and sanitized"),
    ),
    mutant(
        "the end of a job is told before it is stored",
        "target/exec/job/end.c",
        "	enum osd_status status = plain ? OSD_OK : store_end(exec, &ending);",
        "	enum osd_status status = OSD_OK;\n	(void)ending;\n	(void)store_end;",
        *("tests/jobs/test_exec.py",),
    ),
    mutant(
        "a queued job is forgotten by a restart",
        "target/exec/recover.c",
        "give_up(exec, record, readmit(exec, record))",
        "record->state == OSD_STATE_HELD ? readmit(exec, record) : OSD_OK",
        *("tests/jobs/test_exec.py", "-k", "survive"),
    ),
    mutant(
        "an acknowledged kill is forgotten by a restart",
        "target/exec/job/control.c",
        "	job->record.flags |= OSD_JOB_KILL_ASKED;",
        "",
        *("tests/exec/test_restart.py", "-k", "kill_is_not_forgotten"),
    ),
    mutant(
        "generations begin anew after a restart",
        "target/exec/recover.c",
        "osd_objects_openings(exec->objects) << 32",
        "osd_objects_openings(exec->objects) & 0",
        *("tests/exec/test_restart.py", "-k", "generations_go_on"),
    ),
    mutant(
        "a job that wrote is run again",
        "target/exec/recover.c",
        "	else if ((wrote && !(record->flags & OSD_JOB_IDEMPOTENT)) ||",
        "	else if ((false && wrote) ||",
        *("tests/exec/test_restart.py", "-k", "queued_and_held"),
    ),
    # ---- two devices ----
    mutant(
        "a flush forgets the tail",
        "target/store/tier.c",
        "	osd_data_both(file->tier->both, &head, &tail);\n	status = both_ended(file, &head, &tail);\n"
        "	if (status == OSD_OK && names && head.file)",
        "	tail.file = NULL;\n"
        "	osd_data_both(file->tier->both, &head, &tail);\n	status = both_ended(file, &head, &tail);\n"
        "	if (status == OSD_OK && names && head.file)",
        *("tests/tiers/test_failures.py", "-k", "flush"),
    ),
    mutant(
        "a tail begins behind a short head",
        "target/store/tier.c",
        "		status = osd_data_truncate(head, file->head_bytes);",
        "		status = OSD_OK;",
        *("tests/tiers/test_border.py", "-k", "lengths"),
    ),
    mutant(
        "a half that fails is told as the other",
        "target/store/tier_impl.h",
        "	return tail ? OSD_E_TAIL_FAILED : OSD_E_HEAD_FAILED;",
        "	return tail ? OSD_E_HEAD_FAILED : OSD_E_TAIL_FAILED;",
        *("tests/tiers/test_failures.py", "-k", "half"),
    ),
    mutant(
        "the second half waits for the first",
        "target/store/both.c",
        "	queue(both, &call);\n	perform(here);",
        "	perform(here);\n	queue(both, &call);",
        *("tests/tiers/test_failures.py", "-k", "at_once"),
    ),
    mutant(
        "an older copy is opened",
        "target/store/media.c",
        "	if (!fits(&store->main_block.stamp, &store->heads_block.stamp))",
        "	if (0 && !fits(&store->main_block.stamp, &store->heads_block.stamp))",
        *("tests/tiers/test_failures.py", "-k", "stale"),
    ),
    mutant(
        "lost heads are read as zeros",
        "target/store/tier.c",
        "holes ? OSD_OK : osd_tier_of_half(file, tail, OSD_E_MEDIUM)",
        "holes ? OSD_OK : OSD_OK",
        *("tests/tiers/test_failures.py", "-k", "zeros"),
    ),
    mutant(
        "direct I/O reads from the start of a block",
        "target/store/direct.c",
        "			skip = (size_t)(offset - at);",
        "			skip = 0;",
        *("tests/tiers/test_direct.py", "-k", "bytes"),
    ),
    # ---- jobs ----
    mutant(
        "a key finds no earlier job",
        "target/exec/repeated.c",
        "	status = osd_job_key_find(txn, &wanted, &id);",
        "	status = osd_job_key_find(txn, &wanted, &id) == OSD_OK ? OSD_E_NO_OBJECT\n"
        "							       : OSD_E_NO_OBJECT;",
        *("tests/jobs/test_races.py", "-k", "one_key"),
    ),
    mutant(
        "lost wake-up: nobody is told of a queued job",
        "target/exec/pool/pool.c",
        "	pools->work(pool->exec);\n	/* The first job may wait",
        "	/* The first job may wait",
        *("tests/jobs/test_nothing_left.py", "-k", "idle"),
    ),
    mutant(
        "lost wake-up: nobody is told of a job that was started where it was accepted",
        "target/exec/run/start.c",
        "	if (wake)\n		pthread_cond_signal(&exec->runs->work);",
        "	(void)wake;",
        *("tests/jobs/test_nothing_left.py", "-k", "idle"),
    ),
    mutant(
        "each attribute of a job is looked up at a time of its own",
        "target/exec/tell/pages.c",
        "	osd_txn_keep(txn, OSD_STEAL(v));",
        "	static _Thread_local struct osd_job_view last;\n\n	last = *v;\n	*ret_view = &last;",
        *("tests/jobs/test_job_snapshot.py",),
    ),
    mutant(
        "a kill does not count when the script is over first",
        "target/exec/run/end.c",
        "	uint16_t reason = job->end_reason;\n\n	osd_assert_held",
        "	uint16_t reason = 0;\n\n	osd_assert_held",
        *("tests/jobs/test_exec.py", "-k", "kill or ends"),
    ),
    mutant(
        "a held job starts",
        "target/exec/job/control.c",
        "OSD_STATE_QUEUED, OSD_JOB_EVENT_HOLD, OSD_REASON_HELD}",
        "OSD_STATE_HELD, OSD_JOB_EVENT_HOLD, OSD_REASON_HELD}",
        *("tests/jobs/test_history.py",),
    ),
    mutant(
        "the wall limit is ignored",
        "target/exec/sandbox/watch.c",
        "	if (osd_starvation_is_late(sandbox, now)) {",
        "	if (false && osd_starvation_is_late(sandbox, now)) {",
        *("tests/jobs/test_exec.py", "-k", "ends"),
    ),
    mutant(
        "the output limit is ignored",
        "target/exec/run/output.c",
        "		atomic_store(&output->over_limit, true);",
        "		atomic_store(&output->over_limit, false);",
        *("tests/sanitize/test_units.py", "-k", "test_job_output and sanitized"),
    ),
    mutant(
        "the throttle of an array is ignored",
        "target/exec/flow/array.c",
        "(size->at_once == 0 || array->running < size->at_once)",
        "(size->at_once == 0 || array->running < size->at_once + 1)",
        *("tests/jobs/test_arrays.py", "tests/jobs/test_arrays_run.py"),
    ),
    mutant(
        "lower priorities go first",
        "target/exec/queue/fair_queue.c",
        "		return rank(a) > rank(b);",
        "		return rank(a) < rank(b);",
        *("tests/sanitize/test_units.py", "-k", "test_fair_queue and sanitized"),
    ),
    mutant(
        "a record expires an hour too soon",
        "target/exec/flow/sweep.c",
        "expired.now_msec = osd_wall_msec();",
        "expired.now_msec = osd_wall_msec() + 8 * 24 * 3600000ull;",
        *("tests/jobs/test_expiry.py",),
    ),
    mutant(
        "leaked descriptor: the standard error of each sandbox",
        "target/exec/sandbox/sandbox.c",
        "	osd_closep(&sandbox->stderr_fd);",
        "",
        *("tests/jobs/test_nothing_left.py",),
    ),
    # ---- zones, limits of scripts ----
    mutant(
        "missing zone check",
        "target/exec/session/session.c",
        "	if (id.partition_id != zone->id.partition_id || zone->type == OSD_PARTITION)\n"
        "		return OSD_E_PERMISSION;",
        "",
        *("tests/sanitize/test_units.py", "-k", "test_proxy_ops and sanitized"),
    ),
    mutant(
        "a collection zone takes whatever is in its partition",
        "target/exec/session/session.c",
        "	return member ? OSD_OK : OSD_E_PERMISSION;",
        "	return member ? OSD_OK : OSD_OK;",
        *("tests/sanitize/test_units.py", "-k", "test_proxy_ops and sanitized"),
    ),
    mutant(
        "a script may make sockets",
        "sandbox/seccomp_rules.c",
        "	NUMBER(getrandom),",
        "	NUMBER(getrandom), NUMBER(socket),",
        *("tests/sandbox/test_denied.py",),
    ),
    # ---- objects, attributes ----
    mutant(
        "reused id: the highest one is forgotten with its object",
        "target/object/object_record.c",
        "	if (txn->id.object_id < atomic_load(&partition->id_mark))\n		return OSD_OK;",
        "	return OSD_OK;",
        *("tests/jobs/test_expiry.py", "-k", "ids"),
    ),
    mutant(
        "the first write after a rest leaves the version of the record valid",
        "target/object/grow.c",
        "	if (atomic_load(&object->version_stale) && !due)\n		return OSD_OK;",
        "	return OSD_OK;",
        *("tests/sanitize/test_units.py", "-k", "data_version and sanitized"),
    ),
    mutant(
        "two commands that want one version are both done",
        "target/object/change.c",
        "	if (whole || run->change->wanted ||",
        "	if (whole ||",
        *("tests/sanitize/test_units.py", "-k", "range_waits and sanitized"),
    ),
    mutant(
        "a member that joins leaves the version of its collection",
        "target/object/data_version.c",
        "	record.version = osd_version_new(txn->objects);",
        "	(void)record;",
        *("tests/sanitize/test_units.py", "-k", "members_version and sanitized"),
    ),
    mutant(
        "a partition's quota is ignored",
        "target/object/quota.c",
        "	if (account && !add_below(&account->charged_bytes, delta, quota))",
        "	if (account && !add_below(&account->charged_bytes, delta, quota | OSD_NO_LIMIT))",
        *("tests/command/test_quotas.py", *WITHOUT_SANITIZERS),
    ),
    mutant(
        "jobs count as the partition's data",
        "target/object/partition.h",
        "	return osd_is_apart(object_id, flags) ? &partition->apart : &partition->data;",
        "	return osd_is_apart(object_id, flags) ? &partition->data : &partition->data;",
        "tests/fault/test_accounting.py",
    ),
    mutant(
        "reads do not wait for writes of the same bytes",
        "target/object/data.c",
        "		osd_range_acquire(&object->ranges, range, offset, end, false);",
        "		osd_range_acquire(&object->ranges, range, UINT64_MAX - 1, UINT64_MAX, false);",
        *("tests/sanitize/test_units.py", "-k", "range_waits and sanitized"),
    ),
    mutant(
        "an index keeps the values that were",
        "target/object/index_keep.c",
        "	struct osd_index_change *change = add_change(txn, put);",
        "	struct osd_index_change *change = add_change(txn, true);\n\n	(void)put;",
        *("tests/command/test_index.py", *WITHOUT_SANITIZERS),
    ),
    # ---- wire ----
    mutant(
        "off by one: the length of the CDB's additional header segment",
        "pyosd/_core/pdu.c",
        "		osd_wr_be(&w, cdb_length - 15, 2);",
        "		osd_wr_be(&w, cdb_length - 16, 2);",
        *("tests/client/test_target.py",),
    ),
    mutant(
        "sense data point one byte too far",
        "target/wire/sense.c",
        "	osd_wr_be(w, sense->field_pointer, 2);",
        "	osd_wr_be(w, sense->field_pointer + 1u, 2);",
        *("tests/command/test_conditions.py", *WITHOUT_SANITIZERS),
    ),
    mutant(
        "residuals are not told to tgtd",
        "target/shim/tgt_cmd.c",
        "		buffer->resid = (int32_t)(buffer->length - (uint32_t)actual);",
        "		buffer->resid = 0;",
        *("tests/command/test_residuals.py", "-k", "iscsi"),
    ),
    # ---- the resource manager's policy ----
    mutant(
        "a pool shrinks at the first look",
        "iosd_host/policy/follow.py",
        "self._agreed < scale.wait_count << self._regrets",
        "self._agreed < 1",
        *POLICY_TESTS,
    ),
    mutant(
        "a pool may swing as often as it likes",
        "iosd_host/policy/follow.py",
        "return self._direction <= 0 or len(self._times) + 2 + reserve <= TURNS",
        "return True",
        *POLICY_TESTS,
    ),
    mutant(
        "what is at work counts for nothing",
        "iosd_host/policy/policy.py",
        "pending = pool.busy + (",
        "pending = 0 * pool.busy + (",
        *POLICY_TESTS,
    ),
    mutant(
        "slots beyond the memory",
        "iosd_host/policy/policy.py",
        "size = max(pool.active, min(size, room))",
        "pass",
        *POLICY_TESTS,
    ),
    mutant(
        "a late reading is taken for the opposite",
        "iosd_host/policy/policy.py",
        "load = self._foresee(load)",
        "pass",
        *POLICY_TESTS,
    ),
    mutant(
        "jobs are never refused for commands' sake",
        "iosd_host/policy/strain.py",
        'return True, f"{self.why}',
        'return None; f"{self.why}',
        *POLICY_TESTS,
    ),
    # ---- many targets ----
    mutant(
        "a copy is removed though it has changed",
        "pyosd/cluster/upkeep.py",
        "target.remove(obj, if_version=state.version)",
        "target.remove(obj)",
        *COPIES_TESTS,
    ),
    mutant(
        "a copy of which nothing is known counts as bad",
        "pyosd/cluster/survey.py",
        "return replace(state, unchecked=outcome.error)",
        "return replace(state, unreadable=outcome.error)",
        *COPIES_TESTS,
    ),
    mutant(
        "a target is lost at its first fault",
        "pyosd/cluster/many.py",
        "if not passing or time.monotonic() >= end:",
        "if True:",
        "tests/client/test_many.py",
        "-k",
        "stays_away",
    ),
)
