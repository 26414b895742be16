#!/usr/bin/env python3
"""Lines of the kernel's `tcp_sock` and `net_device` that a packet uses, before and after their fields were reordered by hand.

    experiments/layout/kernel.py [--round-trips 200] [--kib 1024] [--cpus 1]

Linux 6.8 has the fields of the fast paths of these structures in another order: by the authors' count they span 8 lines of
`tcp_sock` and 4 of `net_device`, 12 and 12 before (Coco Li, "tcp: reorganize tcp_sock fast path variables", "net-device:
reorganize net_device fast path variables"). Each kernel, Debian's 6.1 and 6.12, is recorded with every access under
loopback.c, once for round trips of small messages and once for a bulk send.

A packet is the references to one object during a call of a function, without those during calls of the path's other
functions in it: `tcp_sock` by `tcp_v4_rcv` (receive; acknowledgements are packets too, and what they let go is transmitted
in there), `tcp_sendmsg` (transmit; of a bulk send one call has many segments) and `tcp_recvmsg` (read); `net_device` by
`__netif_receive_skb_one_core` (with all protocols above) and `__dev_queue_xmit`. Printed are the median lines of a packet,
and the median of those from the part of `tcp_sock` on that was reordered: all behind `inet_conn`.

The last line of a structure counts as the authors did: the lines that the fields of their list span in the declaration
that the guest's kernel sent, whether a load uses them or not; beside it those that the loads use, and the fields that they
use on other lines.

One CPU: Debian's 6.1 brings up no second one under the clock by instructions.
The environment's NEARMISS names another binary than target/release/nearmiss; scripts/setup-newer-kernel.sh 6.1 bookworm
fetches the older kernel.
"""

import argparse, glob, json, os, subprocess, sys, tempfile, time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, os.path.dirname(HERE))
from traced import cpu  # noqa: E402

KERNELS = ["6.1.0", "6.12"]
LOADS = [("round trips", "mark:1", "mark:2"), ("bulk send", "mark:2", "mark:3")]
LINE = 64
# The groups of net/ipv4/tcp.c and net/core/dev.c of Linux 6.8 (tcp_struct_check, net_dev_struct_check), and `tcp_mstamp` with
# its clock, which lie between them.
FAST_TCP = """max_window rcv_ssthresh reordering notsent_lowat gso_segs lost_skb_hint retransmit_skb_hint
    tsoffset snd_wnd mss_cache snd_cwnd prr_out lost_out sacked_out scaling_ratio
    copied_seq rcv_tstamp snd_wl1 tlp_high_seq rttvar_us retrans_out advmss urg_data lost rtt_min out_of_order_queue
    snd_ssthresh
    segs_out data_segs_out bytes_sent snd_sml chrono_start chrono_stat write_seq pushed_seq lsndtime mdev_us rtt_seq
    tcp_wstamp_ns tsorted_sent_queue highest_sack ecn_flags
    pred_flags tcp_clock_cache tcp_mstamp rcv_nxt snd_nxt snd_una window_clamp srtt_us packets_out snd_up delivered
    delivered_ce app_limited rcv_wnd rx_opt
    bytes_received segs_in data_segs_in rcv_wup max_packets_out cwnd_usage_seq rate_delivered rate_interval_us
    rcv_rtt_last_tsecr first_tx_mstamp delivered_mstamp bytes_acked rcv_rtt_est rcvq_space""".split()
FAST_DEVICE = """priv_flags netdev_ops header_ops _tx real_num_tx_queues gso_max_size gso_ipv4_max_size gso_max_segs
    gso_partial_features num_tc mtu needed_headroom tc_to_txq xps_maps nf_hooks_egress tcx_egress
    lstats tstats dstats state flags hard_header_len features ip6_ptr
    ptype_specific ifindex real_num_rx_queues _rx gro_flush_timeout napi_defer_hard_irqs gro_max_size gro_ipv4_max_size
    rx_handler rx_handler_data nd_net npinfo tcx_ingress""".split()
STRUCTURES = [
    ("tcp_sock", {"receive": "tcp_v4_rcv", "transmit": "tcp_sendmsg", "read": "tcp_recvmsg"}, "inet_conn.", FAST_TCP, (12, 8)),
    ("net_device", {"receive": "__netif_receive_skb_one_core", "transmit": "__dev_queue_xmit"}, "", FAST_DEVICE, (12, 4)),
]


def options():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--nearmiss", default=os.environ.get("NEARMISS", f"{ROOT}/target/release/nearmiss"))
    parser.add_argument("--round-trips", type=int, default=200)
    parser.add_argument("--kib", type=int, default=1024)
    parser.add_argument("--cpus", default="1")
    return parser.parse_args()


def kernel(series):
    """The newest kernel of a series in nearmiss's cache."""
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    found = glob.glob(f"{cache}/nearmiss/kernel/{series}[.-]*-amd64/vmlinuz")
    if not found:
        sys.exit(f"no kernel {series}: scripts/setup-newer-kernel.sh {series[:3]} bookworm, or scripts/setup-kernel.sh")
    return os.path.basename(os.path.dirname(max(found, key=os.path.getmtime)))


def called(words, place):
    done = subprocess.run(words, cwd=place, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(words)}: {done.stderr.strip()}")
    return done.stdout


def median(counts):
    """The lower median of values by their number."""
    half, seen = sum(counts.values()) / 2, 0
    for value in sorted(counts):
        seen += counts[value]
        if seen >= half:
            return value


def packets(visits, first):
    """Packets of a path, their median lines, and their median lines from `first` on."""
    whole, own = {}, {}
    for lines in visits["sets"]:
        for sums, count in ((whole, len(lines["lines"])), (own, sum(line >= first for line in lines["lines"]))):
            sums[count] = sums.get(count, 0) + lines["visits"]
    return visits["count"], median(whole), median(own)


def recorded(chosen, place, release, program, window):
    """One window of the load: its run."""
    runs = f"{place}/runs"
    called([chosen.nearmiss, "trace", "-q", "--kernel", release, "--cpus", chosen.cpus, "--memory", "1GiB", "--carry", "fields",
            "--no-curve", "--from", window[0], "--until", window[1], "--runs", runs, "--", program, str(chosen.round_trips),
            str(chosen.kib)], place)
    return max(os.scandir(runs), key=lambda entry: entry.name).path


def uses(chosen, place, run, name, paths):
    """The uses of a structure in a run, and its declaration."""
    words = [chosen.nearmiss, "report", run, "--kernel-structures", "--json", "--during", ",".join(paths.values())]
    structures = json.loads(called(words, place))["structures"]
    with open(f"{run}/symbols.json") as file:
        declared = json.load(file)["kernel_structures"]
    return next(one for one in structures if one["structure"] == name), next(one for one in declared if one["name"] == name)


def is_listed(field, fast):
    return any(part in fast for part in field["name"].split(".")[0].split("|"))


def lines(fields):
    return {line for field in fields for line in range(field["from"] // LINE, (field["from"] + field["bytes"] - 1) // LINE + 1)}


def judged(chosen, place, release, runs, structure):
    name, paths, base, fast, authors = structure
    used = {}
    for (load, *_), run in zip(LOADS, runs):
        use, declared = uses(chosen, place, run, name, paths)
        own = min(field["from"] for field in declared["fields"] if not base or not field["name"].startswith(base)) // LINE
        used.update((field["from"], field) for line in use["by_line"] for field in line["fields"])
        for path, function in paths.items():
            for visits in (row for row in use["visits"] if row["during"] == function):
                count, whole, behind = packets(visits, own)
                rest = f", {behind:2} of them from line {own} on" if own else ""
                print(f"{release:27} {name:10} {load:12} {path:9} {count:5,} packets {whole:3} of {use['lines']} lines{rest}", flush=True)
    listed = [field for field in declared["fields"] if is_listed(field, fast)]
    seen = [field for field in used.values() if is_listed(field, fast)]
    others = [field for field in used.values() if field["from"] // LINE >= own and not lines([field]) & lines(listed)]
    names = ", ".join(field["name"] for field in sorted(others, key=lambda field: field["from"]))
    end = max(field["from"] + field["bytes"] for field in listed)
    print(f"{release:27} {name:10} listed fields span {len(lines(listed))} lines (authors: {authors[0]} before 6.8, {authors[1]} since)"
          f" from byte {min(field['from'] for field in listed):,} to {end:,}; those used span {len(lines(seen))}", flush=True)
    print(f"{release:27} {name:10} used on other lines: {names or 'none'}", flush=True)


def main():
    chosen = options()
    chosen.nearmiss = os.path.realpath(chosen.nearmiss)
    print(f"# experiments/layout/kernel.py --round-trips {chosen.round_trips} --kib {chosen.kib} --cpus {chosen.cpus},"
          f" {time.strftime('%F %H:%M')}, {cpu()}")
    with tempfile.TemporaryDirectory() as place:
        program = f"{place}/loopback"
        subprocess.run(["gcc", "-O2", "-pthread", f"-I{ROOT}/native/include", "-o", program, f"{HERE}/loopback.c"], check=True)
        for release in map(kernel, KERNELS):
            runs = [recorded(chosen, place, release, program, window) for _, *window in LOADS]
            for structure in STRUCTURES:
                judged(chosen, place, release, runs, structure)
            subprocess.run(["rm", "-r", *runs], check=True)


if __name__ == "__main__":
    main()
