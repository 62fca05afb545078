"""The interpreter of programs that tests start: `python ARGUMENTS` as a fork of the fork server (see fork_server.py).

conftest.py writes this file as the programs `python`, `hedge` and `lmms-eval` into a folder of the test run. It passes
on its streams, folder and environment, ends as the program ends, and takes it along where it is killed. It runs without
`site`, in 20 milliseconds.
"""

import array
import json
import os
import signal
import socket
import struct
import sys

SOCKET, LOG = "forks.sock", "forks.log"
FOLDER = os.path.dirname(os.path.dirname(os.path.abspath(sys.argv[0])))


def main() -> None:
    name = os.path.basename(sys.argv[0])
    if sys.argv[1:2] == ["-I"]:  # isolated from the folder and the environment, as no fork is
        os.execv(sys.executable, [sys.executable, *sys.argv[1:]])
    program = [] if name == "python" else [os.path.join(os.path.dirname(sys.executable), name)]
    request = {"arguments": program + sys.argv[1:], "folder": os.getcwd(), "environment": dict(os.environ)}
    text = json.dumps(request).encode()
    server = socket.socket(socket.AF_UNIX)
    server.connect(os.path.join(FOLDER, SOCKET))
    streams = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [0, 1, 2]))]
    server.sendmsg([struct.pack("I", len(text))], streams)
    server.sendall(text)
    process = number(server)
    for each in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2):
        signal.signal(each, lambda sent, _: os.kill(process, sent))
    status = number(server)
    if status < 0:
        signal.signal(-status, signal.SIG_DFL) if -status != signal.SIGKILL else None
        os.kill(os.getpid(), -status)
    os._exit(status)


def number(server: socket.socket) -> int:
    found = server.recv(4, socket.MSG_WAITALL)
    if len(found) < 4:
        with open(os.path.join(FOLDER, LOG)) as log:
            sys.exit(f"the fork server is gone\n{log.read()[-3000:]}")
    return int(struct.unpack("i", found)[0])


if __name__ == "__main__":
    main()
