# SPDX-License-Identifier: BSD-3-Clause
"""relay.py CONTROL: simulates a network of two hosts with delay, packet loss and partition.

It creates two network namespaces, each with a TUN device, and forwards packets between them. CONTROL is a file with the
delay in seconds, the share of lost packets, and 1 for a partition, else 0: "0.003 0.01 0". It is read every 20 ms. When
the network is ready, the names of the namespaces are printed. When stdin closes, the namespaces are removed. Needs root.
"""
import ctypes
import fcntl
import heapq
import os
import random
import select
import struct
import subprocess
import sys
import time

NAMES = ["mercer-a-%d" % os.getpid(), "mercer-b-%d" % os.getpid()]
ADDRESSES = ["10.77.0.1", "10.77.0.2"]
CLONE_NEWNET = 0x40000000
TUNSETIFF, IFF_TUN, IFF_NO_PI = 0x400454CA, 1, 0x1000


def enter(path):
    with open(path, "rb") as file:
        if ctypes.CDLL(None, use_errno=True).setns(file.fileno(), CLONE_NEWNET) != 0:
            raise OSError(ctypes.get_errno(), "setns")


def make_host(name, address):
    """Create a namespace with an address and return the file descriptor of its TUN device."""
    subprocess.run(["ip", "netns", "add", name], check=True)
    enter("/run/netns/" + name)
    device = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(device, TUNSETIFF, struct.pack("16sH22x", b"net0", IFF_TUN | IFF_NO_PI))
    for command in (["addr", "add", address + "/24", "dev", "net0"], ["link", "set", "net0", "up"], ["link", "set", "lo", "up"]):
        subprocess.run(["ip", *command], check=True)
    return device


def carry(devices, control):
    rng = random.Random(1)
    waiting, count = [], 0  # heap of (delivery time, number, receiver, packet)
    delay, loss, parted, looked = 0.0, 0.0, False, 0.0
    while True:
        now = time.monotonic()
        if now - looked > 0.02:
            with open(control, encoding="ascii") as file:
                words = file.read().split()
            if len(words) == 3:
                delay, loss, parted = float(words[0]), float(words[1]), words[2] == "1"
            looked = now
        while waiting and waiting[0][0] <= now:
            _, _, to, packet = heapq.heappop(waiting)
            if not parted:
                try:
                    os.write(devices[to], packet)
                except OSError:
                    pass  # a packet that does not fit is lost, as on any network
        pause = min(0.02, max(0.0, waiting[0][0] - now)) if waiting else 0.02
        ready, _, _ = select.select([*devices, sys.stdin], [], [], pause)
        if sys.stdin in ready:
            return
        for number in (0, 1):
            while devices[number] in ready:
                try:
                    packet = os.read(devices[number], 65536)
                except BlockingIOError:
                    break
                if rng.random() >= loss:
                    count += 1
                    heapq.heappush(waiting, (time.monotonic() + delay, count, 1 - number, packet))


def main():
    home = os.open("/proc/self/ns/net", os.O_RDONLY)
    try:
        devices = [make_host(name, address) for name, address in zip(NAMES, ADDRESSES)]
        ctypes.CDLL(None).setns(home, CLONE_NEWNET)
        print(*NAMES, flush=True)
        carry(devices, sys.argv[1])
    finally:
        ctypes.CDLL(None).setns(home, CLONE_NEWNET)
        for name in NAMES:
            subprocess.run(["ip", "netns", "del", name], stderr=subprocess.DEVNULL, check=False)


if __name__ == "__main__":
    main()
