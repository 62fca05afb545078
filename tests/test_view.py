"""`hedge report --serve`: how far an evaluation is, pages that are made again only for something new, the server."""

from __future__ import annotations

import http.client
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from finished_runs import EXACT, HOSTILE, finished_run

from hedge_tasks.cli import main
from hedge_tasks.errors import ConfigError, DataError
from hedge_tasks.io.keyed_log import KeyedLog, Line, log_files, read_lines
from hedge_tasks.report import ReportOptions
from hedge_tasks.report.live import site as site_module
from hedge_tasks.report.live.server import ViewServer
from hedge_tasks.report.live.site import Site, duration, output_folders
from hedge_tasks.report.live.watching import Watch
from hedge_tasks.runs.health import SAME
from hedge_tasks.runs.run_files import Run, save_run
from hedge_tasks.sampling import Answer, AnswerSet, archive
from hedge_tasks.sampling.definition import Definition
from hedge_tasks.sampling.plan import NOT_OF_THE_ANSWER, SamplingPlan
from hedge_tasks.sampling.segments import home
from hedge_tasks.sampling.store import AnswerStore, FinishedDraw, StoredDocument

PLAN = SamplingPlan.from_generation_kwargs({"n": 2, "n_noisy": 1})


class Sampled:
    """An evaluation that draws when it is told to: 2 documents of 1 + 2 + 1 answers by default."""

    def __init__(
        self, folder: Path, *, n: int = 2, n_noisy: int = 1, documents: int = 2, task: str = "hedge_x"
    ) -> None:
        sampling = {name: value for name, value in PLAN.settings().items() if name not in NOT_OF_THE_ANSWER}
        self.definition = Definition(
            model="a-model:1", task=task, prompt={"name": "plain", "user": "{question}"}, sampling=sampling
        )
        self.store = AnswerStore(folder)
        asked = [
            StoredDocument(
                definition=self.definition.id,
                key=f"key {task} {i}",
                id=f"q{i}",
                question=f"Question {i}?",
                n=n,
                n_noisy=n_noisy,
            )
            for i in range(documents)
        ]
        self.store.put_documents([self.definition], asked)
        self.missing = [
            (key, document.id, home(document.key))
            for document in asked
            for key, _ in archive.keyed_answers(self.store, self.definition, document, n, n_noisy)
        ]

    def draw(self, number: int) -> None:
        answer = Answer("yes", -0.5, 1, "stop")
        now, self.missing = self.missing[:number], self.missing[number:]
        self.store.put([FinishedDraw(key, answer, name, "clean", i, of) for i, (key, name, of) in enumerate(now)])


def test_draws_rate_and_time_left_are_those_of_hand_calculation(tmp_path: Path) -> None:
    sampled, now = Sampled(tmp_path), [100.0]
    watch = Watch(tmp_path, clock=lambda: now[0])
    [found] = watch.look()
    assert (found.done, found.planned, found.documents, found.complete) == (0, 8, 2, 0)
    assert (found.rate, found.left_s, found.state, found.health) == (None, None, "sampling", None)
    sampled.draw(3)
    now[0] = 110.0
    [found] = watch.look()
    assert (found.done, found.rate, found.left_s) == (3, 0.3, pytest.approx(5 / 0.3))
    sampled.draw(2)
    now[0] = 150.0
    [found] = watch.look()
    assert (found.done, found.complete, found.rate, found.left_s) == (5, 1, 0.1, 30.0)
    assert found.health is not None
    assert (found.health.documents, found.health.draws, found.health.shares[SAME]) == (1, 4, 1.0)
    sampled.draw(3)
    [found] = watch.look()
    assert (found.done, found.complete, found.state, found.rate, found.left_s) == (8, 2, "complete", None, None)


def test_the_rate_is_that_of_the_last_minutes(tmp_path: Path) -> None:
    sampled, now = Sampled(tmp_path, documents=30), [0.0]
    watch = Watch(tmp_path, clock=lambda: now[0])
    for when, drawn in ((0.0, 0), (300.0, 90), (700.0, 4), (1000.0, 6)):
        now[0] = when
        sampled.draw(drawn)
        [found] = watch.look()
    assert found.rate == pytest.approx(10 / 700)  # since 300 s: the last look before the window begins


def test_what_stays_away_is_said(tmp_path: Path) -> None:
    sampled = Sampled(tmp_path)
    sampled.draw(1)
    [file] = tmp_path.glob("answers-*.jsonl")
    later = file.stat().st_mtime + 600
    [found] = Watch(tmp_path, wall=lambda: later).look()
    assert (found.state, found.left_s, found.quiet_s) == ("stalled", None, pytest.approx(600))


def test_a_dead_evaluation_beside_a_live_one_is_said(tmp_path: Path) -> None:
    dead, live, now = Sampled(tmp_path, task="dead"), Sampled(tmp_path, task="live", documents=9), [1000.0]
    dead.draw(1)
    watch = Watch(tmp_path, clock=lambda: now[0])
    watch.look()
    for _ in range(3):
        now[0] += 100
        live.draw(2)
        found = {one.task: one.state for one in watch.look()}
    assert found == {"live": "sampling", "dead": "stalled"}


def test_a_run_of_baseline_answers_alone_is_complete_with_them(tmp_path: Path) -> None:
    sampled = Sampled(tmp_path, n=0, n_noisy=0, documents=3)
    assert len(sampled.missing) == 3
    sampled.draw(3)
    [found] = Watch(tmp_path).look()
    assert (found.done, found.planned, found.complete, found.state) == (3, 3, 3, "complete")


def log_of(folder: Path, *records: dict[str, Any]) -> None:
    with KeyedLog(folder, "x", "numbers", lambda record: record) as log:
        log.keep(("k", record, record) for record in records)


def test_a_line_under_way_is_read_once_it_is_whole_and_damage_is_counted(tmp_path: Path) -> None:
    begins: dict[Path, Any] = {}

    def new() -> list[Line]:
        return list(read_lines(log_files(tmp_path, "x"), begins, unfinished=False))

    log_of(tmp_path, {"a": 1}, {"a": 2})
    [file] = log_files(tmp_path, "x")
    whole = file.read_bytes()
    file.write_bytes(whole[:-5])
    assert [line.record for line in new()] == [{"key": "k", "a": 1}]
    assert new() == []
    file.write_bytes(whole + b"nonsense\n")
    lines = new()
    assert [(line.number, line.record) for line in lines] == [(2, {"key": "k", "a": 2}), (3, None)]
    file.write_bytes(whole)  # shorter than it was: another file under the same name
    assert [line.record for line in new()] == [{"key": "k", "a": 1}, {"key": "k", "a": 2}]
    long = {"b": "longer than what was there"}
    log_of(tmp_path / "other", long, {"b": 2}, {"b": 3})
    log_files(tmp_path / "other", "x")[0].replace(file)
    assert [(line.number, line.record) for line in new()] == [
        (i, {"key": "k", **record}) for i, record in enumerate([long, {"b": 2}, {"b": 3}], start=1)
    ]
    assert new() == []


def test_every_line_is_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sampled = Sampled(tmp_path)
    sampled.draw(4)
    watch = Watch(tmp_path)
    watch.look()
    taken: list[Any] = []
    take = AnswerStore._take
    monkeypatch.setattr(AnswerStore, "_take", lambda self, *line: (taken.append(line), take(self, *line)))
    sampled.draw(2)
    watch.look()
    watch.look()
    assert len(taken) == 2


@pytest.mark.parametrize(
    ("seconds", "said"), [(0, "0 s"), (59.6, "1 min 0 s"), (3599, "59 min 59 s"), (86_399, "23 h 59 min")]
)
def test_durations(seconds: float, said: str) -> None:
    assert duration(seconds) == said


def filled(folder: Path) -> Path:
    """An output folder with a finished run, and one below it with an evaluation under way and another run."""
    save_run(finished_run(8), folder / "hedge_runs")
    save_run(finished_run(8, model=HOSTILE["script"]), folder / "inner" / "hedge_runs")
    Sampled(folder / "inner" / "hedge_answers", task=HOSTILE["script"]).draw(5)
    return folder


@pytest.mark.slow
def test_pages_of_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = []
    build = site_module.build_report
    monkeypatch.setattr(
        site_module, "build_report", lambda *given, **more: (made.append(given), build(*given, **more))[1]
    )
    folder = filled(tmp_path)
    assert output_folders(folder) == [folder, folder / "inner"]
    site = Site(folder, ReportOptions(pictures=False, curves=False))
    first = site.page("/") or ""
    assert "5 of 8 draws, 1 of 2 documents complete" in first
    assert "<script>window.hacked" not in first
    assert first.count('href="/run/') == 4  # the reports and their detectors; no claims are kept
    assert "Trust: " in first
    assert site.page("/run/2") is None
    assert site.page("/nothing") is None
    whole = site.page("/report") or ""
    assert whole.count('class="run"') == 2
    assert (site.page("/run/0") or "").count('class="run"') == 1
    assert site.page("/report") == whole
    assert len(made) == 2  # of three asked for
    save_run(finished_run(10, seed=1), folder / "hedge_runs")  # written a microsecond later
    assert site.page("/report") != whole
    assert len(made) == 3
    (folder / "20260101_000000_results.json").write_text("{}")  # lmms-eval's, a little after the run file
    site.page("/report")
    assert len(made) == 4


@pytest.mark.slow
def test_the_pages_about_a_run_link_to_each_other(tmp_path: Path) -> None:
    from test_claim_table import scripted

    assert main(["claims", str(save_run(claimed(scripted(0, images=8)), tmp_path / "hedge_runs")), "--keep"]) == 0
    site = Site(tmp_path, ReportOptions(pictures=False, curves=False))
    pages = {name: site.page(f"/run/0{at}") or "" for name, at in PAGES.items()}
    finding = site.page("/") or ""
    for name, page in pages.items():
        assert f'<strong aria-current="page">{name}</strong>' in page
        assert {at for at in PAGES.values() if f'href="/run/0{at}"' in page} == {*PAGES.values()} - {PAGES[name]}
        assert 'href="/"' in page
        assert 'class="finding"' in page
    assert all(f'href="/run/0{at}"' in finding for at in PAGES.values())
    assert "labelled claims are hallucinated" in pages["Claims"]


PAGES = {"Report": "", "Detectors": "/detectors", "Claims": "/claims"}


def claimed(sets: tuple[AnswerSet, ...]) -> Run:
    return Run("hedge_x", "m", sets, {}, {"filters": EXACT}, "2026-01-02T03:04:05+00:00")


def test_a_damaged_run_file_does_not_hide_the_others(tmp_path: Path) -> None:
    folder = tmp_path / "hedge_runs"
    save_run(finished_run(8), folder)
    (folder / "run-99999999999999999999-hedge_y.jsonl").write_text("{}\n")
    page = Site(tmp_path).page("/") or ""
    assert page.count('href="/run/') == 2
    assert "run-99999999999999999999-hedge_y.jsonl" in page


def test_a_folder_that_is_none_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(DataError, match="no such folder"):
        Site(tmp_path / "nowhere")
    assert main(["report", "--serve", str(tmp_path / "nowhere")]) == 2
    assert "no such folder" in capsys.readouterr().err


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Any]:
    running: list[ViewServer] = []

    def served(host: str = "127.0.0.1") -> ViewServer:
        server = ViewServer(Site(tmp_path), host, 0)
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        running.append(server)
        return server

    yield served
    for server in running:
        server.shutdown()
        server.server_close()


def asked(server: ViewServer, path: str, method: str = "GET", **head: str) -> tuple[int, Any, str]:
    connection = http.client.HTTPConnection("127.0.0.1", server.server_address[1], timeout=20)
    connection.request(method, path, headers=head)
    reply = connection.getresponse()
    text = reply.read().decode()
    connection.close()
    return reply.status, reply.headers, text


def test_the_server_shows_its_pages_and_nothing_else(serve: Any, tmp_path: Path) -> None:
    (tmp_path / "secret.txt").write_text("secret")
    server = serve()
    assert server.url == f"http://127.0.0.1:{server.server_address[1]}/"
    status, head, text = asked(server, "/")
    assert (status, head["Cache-Control"], "None yet" in text) == (200, "no-store", True)
    assert "connect-src &#39;self&#39;" in text
    for path in ("/secret.txt", "/../secret.txt", "//etc/passwd", "/run/0", "/report", "/%2e%2e/secret.txt"):
        assert asked(server, path)[0] == 404
    assert asked(server, "/", "HEAD")[2] == ""
    assert asked(server, "/", "POST")[0] == 501
    # A name of somebody else's that leads here: his page must not read the answers.
    assert asked(server, "/", Host="evil.example")[0] == 421
    assert asked(server, "/", Host="localhost:1")[0] == 200
    assert asked(server, "/", Host="[")[0] == 400


def test_for_other_machines_there_is_a_key(serve: Any) -> None:
    server = serve("0.0.0.0")
    assert server.key is not None
    assert server.url.endswith(f"/?key={server.key}")
    assert asked(server, "/")[0] == asked(server, "/?key=wrong")[0] == asked(server, "/?key=%C3%A9")[0] == 403
    status, head, _ = asked(server, f"/?key={server.key}")
    assert (status, head["Location"]) == (303, "/")
    cookie = head["Set-Cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=Strict" in cookie
    assert asked(server, "/", Cookie=cookie.partition(";")[0])[0] == 200
    assert asked(server, "/", Cookie="hedge-view=other")[0] == 403


def test_a_page_that_fails_is_said_and_the_others_go_on(serve: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    server = serve()

    def fails(path: str) -> str:
        raise DataError("no sense in it") if path == "/report" else RuntimeError("ours")

    page = server.site.page
    monkeypatch.setattr(server.site, "page", fails)
    assert asked(server, "/report")[::2] == (500, "no sense in it")
    assert asked(server, "/")[::2] == (500, "RuntimeError, see the log of the server")
    monkeypatch.setattr(server.site, "page", page)
    assert asked(server, "/")[0] == 200


def test_a_taken_port_is_said(serve: Any, tmp_path: Path) -> None:
    port = serve().server_address[1]
    with pytest.raises(ConfigError, match=f"cannot listen at 127.0.0.1:{port}"):
        ViewServer(Site(tmp_path), "127.0.0.1", port)


@pytest.mark.slow
def test_the_page_follows_an_evaluation(serve: Any, tmp_path: Path) -> None:
    chromium = next((path for name in ("chromium", "google-chrome") if (path := shutil.which(name))), None)
    if chromium is None:
        pytest.skip("no Chromium here (Debian: apt install chromium)")
    from playwright.sync_api import sync_playwright

    sampled, complaints = Sampled(tmp_path / "hedge_answers"), []
    with sync_playwright() as started:
        browser = started.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        page = browser.new_page()
        page.on("console", lambda message: complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.goto(serve().url)
        assert "0 of 8 draws" in page.inner_text("#answers")
        sampled.draw(5)
        page.wait_for_selector("#answers >> text=5 of 8 draws", timeout=30_000)
        assert page.get_attribute("progress", "value") == "5"
        assert "1 complete documents" in page.inner_text("#answers")
        save_run(finished_run(8), tmp_path / "hedge_runs")
        page.wait_for_selector("#runs table th button", timeout=30_000)  # sortable, as it was set up again
        page.click("#runs td a")
        assert page.inner_text("h1").startswith("HEDGE report")
        browser.close()
    assert complaints == []
