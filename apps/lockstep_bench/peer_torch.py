"""Trains a net of Lockstep's zoo with PyTorch and prints one line of JSON: see apps/lockstep_bench/peers.h.

Run by `lockstep_bench peers`. Two settings: "default" is what most people write, "best" is what the same net gains most
from on a CPU; the environment that belongs to "best" (BLAS, malloc) is set by the caller, before the process starts.
"""

import argparse
import json
import sys
import time

CLASSES = 10
PIXELS = 28 * 28
BATCH = 128


def arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("--setting", choices=["default", "best"], required=True)
    parser.add_argument("--model", required=True)
    for name in ("--cores", "--samples", "--epochs", "--warm-up", "--started"):
        parser.add_argument(name, type=int, required=True)
    parser.add_argument("--file", required=True)
    return parser.parse_args()


def answer(line):
    print(json.dumps(line), flush=True)
    sys.exit(0)


def article(nn):
    return nn.Sequential(
        nn.Conv2d(1, 8, 3, padding=1), nn.MaxPool2d(2),
        nn.Conv2d(8, 16, 3, padding=1), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(784, CLASSES))


def lenet5(nn):
    return nn.Sequential(
        nn.Conv2d(1, 6, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(6, 16, 5), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(400, 120), nn.ReLU(),
        nn.Linear(120, 84), nn.ReLU(), nn.Linear(84, CLASSES))


def wide_cnn(nn):
    return nn.Sequential(
        nn.Conv2d(1, 32, 3), nn.ReLU(), nn.Conv2d(32, 64, 3), nn.ReLU(), nn.MaxPool2d(2),
        nn.Dropout(0.25), nn.Flatten(), nn.Linear(9216, 128), nn.ReLU(),
        nn.Dropout(0.5), nn.Linear(128, CLASSES))


MODELS = {"article": article, "lenet5": lenet5, "wide_cnn": wide_cnn}


def initialise(nn, net, model):
    """The zoo's starting values, so that losses can be compared: Glorot for the article's net, else He."""
    for layer in net:
        if not isinstance(layer, (nn.Conv2d, nn.Linear)):
            continue
        if model == "article":
            nn.init.xavier_uniform_(layer.weight)
            limit = (3 / len(layer.bias)) ** 0.5
            nn.init.uniform_(layer.bias, -limit, limit)
        else:
            nn.init.kaiming_normal_(layer.weight, nonlinearity="relu")
            nn.init.zeros_(layer.bias)


def peak_bytes():
    with open("/proc/self/status", encoding="ascii") as status:
        for line in status:
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    return 0


def read_samples(torch, path, count):
    """All samples as floats from 0 to 1, and their classes: loaded before anything is timed."""
    with open(path, "rb") as file:
        data = bytearray(file.read(count * (PIXELS + 1)))
    values = torch.frombuffer(data, dtype=torch.uint8)
    images = values[: count * PIXELS].reshape(count, 1, 28, 28).float().div_(255)
    return images, values[count * PIXELS:].long()


def main():
    options = arguments()
    if options.model not in MODELS:
        answer({"model_missing": "peer_torch.py has no such net"})
    try:
        import torch
    except ImportError as error:
        answer({"missing": f"{sys.executable} cannot import torch: {error}"})
    from torch import nn
    torch.set_num_threads(options.cores)
    torch.manual_seed(0)
    images, labels = read_samples(torch, options.file, options.samples)
    net = MODELS[options.model](nn)
    initialise(nn, net, options.model)
    best = options.setting == "best"
    rate = 0.001 if options.model == "wide_cnn" else 0.01
    if best:
        net = net.to(memory_format=torch.channels_last)
        optimizer = torch.optim.Adam(net.parameters(), lr=rate, foreach=True)
    else:
        optimizer = torch.optim.Adam(net.parameters(), lr=rate)
    loss_of = nn.CrossEntropyLoss()

    first = None
    seconds = []
    mean_loss = 0.0
    for epoch in range(options.warm_up + options.epochs):
        start = time.monotonic()
        total = torch.zeros(())
        for batch in torch.randperm(options.samples).split(BATCH):
            x = images[batch]
            if best:
                x = x.contiguous(memory_format=torch.channels_last)
            loss = loss_of(net(x), labels[batch])
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
            total += loss.detach() * len(batch)
            if first is None:
                first = (time.monotonic_ns() - options.started) / 1e9
        mean_loss = total.item() / options.samples
        if epoch >= options.warm_up:
            seconds.append(time.monotonic() - start)
    answer({
        "version": torch.__version__,
        "parameters": sum(parameter.numel() for parameter in net.parameters()),
        "first_step_seconds": first,
        "epoch_seconds": seconds,
        "peak_rss_bytes": peak_bytes(),
        "loss": mean_loss,
    })


if __name__ == "__main__":
    main()
