"""Trains the article's net with JAX and prints one line of JSON: see apps/lockstep_bench/peers.h.

Run by scripts/gpu_check.sh on what JAX takes for its default device, with the samples in its memory and in true fp32: "jit"
compiles a step, "scan" a whole epoch. Batches that are not full are left out: they would be compiled on their own.
"""

import sys
import time

from peer_common import BATCH, CLASSES, PIXELS, answer, arguments, peak_bytes, read_bytes

BETA1, BETA2, EPSILON, RATE = 0.9, 0.999, 1e-8, 0.01


def initial(jax):
    """Glorot's uniform weights, as the zoo has them."""
    shapes = {"w1": ((8, 1, 3, 3), 9, 72), "w2": ((16, 8, 3, 3), 72, 144), "w3": ((784, CLASSES), 784, CLASSES)}
    weights = {}
    for key, (name, (shape, fan_in, fan_out)) in zip(jax.random.split(jax.random.PRNGKey(0), 3), shapes.items()):
        limit = (6 / (fan_in + fan_out)) ** 0.5
        weights[name] = jax.random.uniform(key, shape, minval=-limit, maxval=limit)
    for name, count in (("b1", 8), ("b2", 16), ("b3", CLASSES)):
        weights[name] = jax.numpy.zeros(count)
    return weights


def step_of(jax):
    """(state, batch's images, classes) -> (state, loss); the state is weights, both moments and the count of steps."""
    jnp, lax, tree_map = jax.numpy, jax.lax, jax.tree_util.tree_map

    def layer(x, w, b):
        y = lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=("NCHW", "OIHW", "NCHW"))
        y = y + b[None, :, None, None]
        return lax.reduce_window(y, -jnp.inf, lax.max, (1, 1, 2, 2), (1, 1, 2, 2), "VALID")

    def loss(weights, x, y):
        hidden = layer(layer(x, weights["w1"], weights["b1"]), weights["w2"], weights["b2"])
        scores = hidden.reshape(x.shape[0], -1) @ weights["w3"] + weights["b3"]
        return -jnp.take_along_axis(jax.nn.log_softmax(scores), y[:, None], axis=1).mean()

    def step(state, x, y):
        weights, m, v, count = state
        value, gradient = jax.value_and_grad(loss)(weights, x, y)
        count = count + 1
        m = tree_map(lambda a, g: BETA1 * a + (1 - BETA1) * g, m, gradient)
        v = tree_map(lambda a, g: BETA2 * a + (1 - BETA2) * g * g, v, gradient)
        rate = RATE / (1 - BETA1**count)
        scale = (1 - BETA2**count) ** 0.5
        weights = tree_map(lambda w, a, b: w - rate * a / (jnp.sqrt(b) / scale + EPSILON), weights, m, v)
        return (weights, m, v, count), value

    return step


def main():
    options = arguments(["jit", "scan"])
    if options.model != "article":
        answer({"model_missing": "peer_jax.py has the article's net only"})
    try:
        import jax
        import numpy
    except ImportError as error:
        answer({"missing": f"{sys.executable} cannot import jax: {error}"})
    jax.config.update("jax_default_matmul_precision", "highest")
    jnp = jax.numpy
    values = jnp.asarray(numpy.frombuffer(read_bytes(options.file, options.samples), dtype=numpy.uint8))
    images = values[: options.samples * PIXELS].reshape(-1, 1, 28, 28).astype(jnp.float32) / 255
    labels = values[options.samples * PIXELS:].astype(jnp.int32)
    step = step_of(jax)

    def one(state, batches, number, images, labels):
        batch = batches[number]
        return step(state, images[batch], labels[batch])

    def whole(state, batches, images, labels):
        return jax.lax.scan(lambda carry, batch: step(carry, images[batch], labels[batch]), state, batches)

    one, whole = jax.jit(one, donate_argnums=0), jax.jit(whole, donate_argnums=0)
    weights = initial(jax)
    zeros = [jax.tree_util.tree_map(jnp.zeros_like, weights) for _ in range(2)]
    state = (weights, *zeros, jnp.zeros((), jnp.float32))

    first = None
    seconds = []
    loss = 0.0
    for epoch in range(options.warm_up + options.epochs):
        start = time.monotonic()
        order = jax.random.permutation(jax.random.PRNGKey(epoch + 1), options.samples)
        batches = order[: options.samples // BATCH * BATCH].reshape(-1, BATCH)
        if options.setting == "scan":
            state, losses = whole(state, batches, images, labels)
        else:
            losses = []
            for number in range(len(batches)):
                state, value = one(state, batches, number, images, labels)
                losses.append(value)
        loss = float(jnp.mean(jnp.asarray(losses)))
        if first is None:
            first = (time.monotonic_ns() - options.started) / 1e9
        if epoch >= options.warm_up:
            seconds.append(time.monotonic() - start)
    answer({
        "version": jax.__version__,
        "parameters": int(sum(weight.size for weight in jax.tree_util.tree_leaves(state[0]))),
        "first_step_seconds": first,
        "epoch_seconds": seconds,
        "peak_rss_bytes": peak_bytes(),
        "loss": loss,
    })


if __name__ == "__main__":
    main()
