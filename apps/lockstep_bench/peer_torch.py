"""Trains a net of Lockstep's zoo with PyTorch and prints one line of JSON: see apps/lockstep_bench/peers.h.

Run by `lockstep_bench peers` with two settings for CPUs: "default" is what most people write, "best" is what the same net
gains most from there; the environment that belongs to "best" (BLAS, malloc) is set by the caller, before the process starts.
scripts/gpu_check.sh runs two for a GPU, with the samples in its memory and in true fp32: "cuda-eager" gives it every
operation on its own, "cuda-graph" records a whole step.
"""

import sys
import time

from peer_common import BATCH, CLASSES, PIXELS, answer, arguments, peak_bytes, read_bytes


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


def read_samples(torch, path, count):
    """All samples as floats from 0 to 1, and their classes: loaded before anything is timed."""
    values = torch.frombuffer(read_bytes(path, count), dtype=torch.uint8)
    images = values[: count * PIXELS].reshape(count, 1, 28, 28).float().div_(255)
    return images, values[count * PIXELS:].long()


def optimizer_of(torch, setting, net, rate):
    options = {"best": {"foreach": True}, "cuda-graph": {"fused": True, "capturable": True}}
    return torch.optim.Adam(net.parameters(), lr=rate, **options.get(setting, {}))


class Steps:
    """Trains on one batch of indices at a time; the sum of the samples' losses is in `total`."""

    def __init__(self, torch, setting, net, optimizer, images, labels):
        self.torch, self.net, self.optimizer = torch, net, optimizer
        self.images, self.labels = images, labels
        self.channels_last = setting == "best"
        self.loss_of = torch.nn.CrossEntropyLoss()
        self.total = torch.zeros((), device=images.device)

    def __call__(self, batch):
        x = self.images[batch]
        if self.channels_last:
            x = x.contiguous(memory_format=self.torch.channels_last)
        loss = self.loss_of(self.net(x), self.labels[batch])
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()
        self.optimizer.step()
        self.total += loss.detach() * len(batch)


class RecordedSteps(Steps):
    """The same with full batches as one CUDA graph; the steps that warm it up are taken back."""

    def __init__(self, torch, setting, net, optimizer, images, labels):
        super().__init__(torch, setting, net, optimizer, images, labels)
        self.batch = torch.zeros(BATCH, dtype=torch.long, device=images.device)
        before = [parameter.detach().clone() for parameter in net.parameters()]
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(3):
                super().__call__(self.batch)
        torch.cuda.current_stream().wait_stream(side)
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph):
            super().__call__(self.batch)
        with torch.no_grad():
            for parameter, value in zip(net.parameters(), before):
                parameter.copy_(value)
            for state in optimizer.state.values():
                for value in state.values():
                    value.zero_()
        self.total.zero_()

    def __call__(self, batch):
        if len(batch) < BATCH:
            super().__call__(batch)
            return
        self.batch.copy_(batch)
        self.graph.replay()


def main():
    options = arguments(["default", "best", "cuda-eager", "cuda-graph"])
    if options.model not in MODELS:
        answer({"model_missing": "peer_torch.py has no such net"})
    try:
        import torch
    except ImportError as error:
        answer({"missing": f"{sys.executable} cannot import torch: {error}"})
    from torch import nn
    on_gpu = options.setting.startswith("cuda")
    if on_gpu and not torch.cuda.is_available():
        answer({"missing": f"PyTorch {torch.__version__} of {sys.executable} finds no GPU"})
    torch.set_num_threads(options.cores)
    torch.manual_seed(0)
    torch.backends.cudnn.allow_tf32 = False
    device = torch.device("cuda" if on_gpu else "cpu")
    images, labels = (part.to(device) for part in read_samples(torch, options.file, options.samples))
    net = MODELS[options.model](nn)
    initialise(nn, net, options.model)
    net = net.to(device)
    if options.setting == "best":
        net = net.to(memory_format=torch.channels_last)
    rate = 0.001 if options.model == "wide_cnn" else 0.01
    kind = RecordedSteps if options.setting == "cuda-graph" else Steps
    step = kind(torch, options.setting, net, optimizer_of(torch, options.setting, net, rate), images, labels)

    first = None
    seconds = []
    mean_loss = 0.0
    for epoch in range(options.warm_up + options.epochs):
        start = time.monotonic()
        step.total.zero_()
        for batch in torch.randperm(options.samples, device=device).split(BATCH):
            step(batch)
            if first is None:
                if on_gpu:
                    torch.cuda.synchronize()
                first = (time.monotonic_ns() - options.started) / 1e9
        mean_loss = step.total.item() / options.samples
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
