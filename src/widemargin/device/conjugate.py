"""Conjugate gradients for many systems at a time, on a device.

A step is a product with the matrices and a few operations on numbers of one column. On a GPU the
time to ask for these is many times what they take, so that some steps are recorded once, as a CUDA
graph, and asked for together.
"""

from __future__ import annotations

from typing import Any

from widemargin.device.namespace import Array, Device

# Steps that are recorded together.
_RECORDED = 4


class ConjugateGradients:
    """Solutions of A x = y that come nearer with every step.

    Where nothing is left of a residual, nothing moves.

    Parameters
    ----------
    device : Device
        Where everything is.
    matrices : array of shape (b, k, k)
        A, positive definite.
    right, start : array of shape (b, k, 1)
        y, and the first x.
    """

    def __init__(self, device: Device, matrices: Array, right: Array, start: Array) -> None:
        xp = device.xp
        self.device, self.matrices = device, matrices
        self.x = xp.asarray(start, copy=True)
        self.left = right - xp.matmul(matrices, start)
        self.along = xp.asarray(self.left, copy=True)
        self.size = xp.sum(self.left * self.left, axis=1, keepdims=True)
        self.tiny = float(xp.finfo(right.dtype).smallest_normal)
        self._graph: Any = None

    def advance(self, steps: int) -> None:
        """Take steps, of which a GPU takes a few more to a full recording."""
        if not self.device.is_torch:
            for _ in range(steps):
                self._step()
        elif not self.device.is_cuda:
            for _ in range(steps):
                self._torch_step()
        else:
            for _ in range(-(-steps // _RECORDED)):
                self._replay()

    def _step(self) -> None:
        xp = self.device.xp
        product = xp.matmul(self.matrices, self.along)
        steep = xp.sum(self.along * product, axis=1, keepdims=True)
        length = self.size / xp.clip(steep, self.tiny, None)
        self.x, self.left = self.x + length * self.along, self.left - length * product
        after = xp.sum(self.left * self.left, axis=1, keepdims=True)
        self.along = self.left + after / xp.clip(self.size, self.tiny, None) * self.along
        self.size = after

    def _torch_step(self) -> None:
        """Take a step in the arrays that are there: a recording knows these only."""
        import torch

        product = torch.bmm(self.matrices, self.along)
        length = torch.bmm(self.along.mT, product).clamp_min_(self.tiny).reciprocal_()
        length.mul_(self.size)
        self.x.addcmul_(length, self.along)
        self.left.addcmul_(length, product, value=-1.0)
        before = self.size.clamp_min(self.tiny)
        torch.bmm(self.left.mT, self.left, out=self.size)
        self.along.mul_(self.size / before).add_(self.left)

    def _replay(self) -> None:
        """Take some steps by a recording; the first time, record them."""
        if self._graph is None:
            self._graph = self._recorded()
        self._graph.replay()

    def _recorded(self) -> Any:
        import torch

        graph = torch.cuda.CUDAGraph()
        here, aside = torch.cuda.current_stream(), torch.cuda.Stream(self.device.where)
        aside.wait_stream(here)
        with torch.cuda.stream(aside):
            # Other threads may go on with what they do.
            graph.capture_begin(capture_error_mode="thread_local")
            try:
                for _ in range(_RECORDED):
                    self._torch_step()
            finally:
                graph.capture_end()
        here.wait_stream(aside)
        return graph
