"""Lists of many runs."""

import json
import sqlite3

from cli_support import CommandLine

COLUMNS = "experiment, root_id, state, managed, timeline, warnings, created_at, version"


def test_many_runs_are_printed_as_one_json_array(own_cli: CommandLine) -> None:
    own_cli("runs")
    own_cli("yard", "stop")
    with sqlite3.connect(own_cli.home / "yard.db") as database:
        database.execute(
            f"WITH RECURSIVE numbers(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < 10500) "
            f"INSERT INTO runs (run_id, {COLUMNS}) "
            "SELECT 'r_' || n, 'digits', 'r_' || n, 'Completed', 0, '{}', '[]', n, 0 FROM numbers"
        )
        database.execute("INSERT INTO tags VALUES ('r_7', 'note', '},{\"run_id\": \"x\"')")
    output = own_cli("runs", "--all", "--json").out
    views = json.loads(output)
    assert [view["run_id"] for view in views] == [f"r_{number}" for number in range(10500, 0, -1)]
    assert views[-7]["tags"] == {"note": '},{"run_id": "x"'}
    assert output.count(b"\n") == 10502  # one line per run
    assert len(json.loads(own_cli("runs", "--all", "--json", "-n", "10100").out)) == 10100
    assert len(json.loads(own_cli("runs", "--json", "-n", "3").out)) == 3
    assert "newest 20 runs" in own_cli("runs").err
