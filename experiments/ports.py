"""Ports of the loopback that the experiments' servers listen on."""
import socket
import sys
import time


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def wait_for(port, who):
    """Until somebody listens there; ends the experiment if nobody does within ten seconds."""
    for _ in range(200):
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        except OSError:
            time.sleep(0.05)
    sys.exit(f"{who} does not listen on port {port}; start {who} by hand to see why")
