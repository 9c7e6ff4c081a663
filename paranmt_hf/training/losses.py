"""The losses: the margin loss on pairs and their negatives, losses on the similarities of a teacher, and penalties.

The margin loss has one negative for each side of a pair.

The losses on a teacher's similarities are not in the papers. The nearest relatives are relational knowledge
distillation (Park et al. 2019, arXiv:1904.05068) for the squares, and ListNet (Cao et al. 2007) for lists.

Penalties of weights are lambda times the squared distance from a centre (arXiv:1511.08198, equation 1). The same
functions serve lambda_c (all weights but word embeddings; the centre is zero or where they started) and lambda_w (word
embeddings; the centre is where they started).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch.autograd.function import FunctionCtx, once_differentiable
from torch.nn.functional import embedding, normalize

from paranmt_hf.errors import DivergedError
from paranmt_hf.training.config import TrainConfig

if TYPE_CHECKING:
    from paranmt_hf.training.teacher_vectors import TeacherVectors

SHORTEST = 1e-12  # The smallest divisor of a vector, as in `torch.nn.functional.normalize`


def margin_loss(
    references: torch.Tensor,
    translations: torch.Tensor,
    reference_negatives: torch.Tensor,
    translation_negatives: torch.Tensor | None = None,
    *,
    margin: float,
) -> torch.Tensor:
    """Compute the margin loss of pairs and their negatives, a scalar.

    It is the mean over pairs of max(0, d - cos(s, s') + cos(s, t)) + max(0, d - cos(s, s') + cos(s', t'))
    (arXiv:1511.08198, equation 1). ParaNMT-50M (Wieting & Gimpel 2018), section 4, prints the first term alone, which
    is the loss without `translation_negatives`. The margin is relative: `MegaBatchMarginLoss` of sentence-transformers
    has two absolute margins.

    Args:
        references: Vectors s [pair, dimension].
        translations: Vectors s' [pair, dimension].
        reference_negatives: Vectors t [pair, dimension], the negative of each s.
        translation_negatives: Vectors t' [pair, dimension], the negative of each s'; None to leave out the second
            term.
        margin: The margin d, above 0.
    """
    roles = [references, translations, reference_negatives]
    if translation_negatives is not None:
        roles.append(translation_negatives)
    loss: torch.Tensor = _MarginLoss.apply(torch.cat(roles), len(roles), margin)
    return loss


def margin_loss_and_gradient(vectors: torch.Tensor, roles: int, margin: float) -> tuple[torch.Tensor, torch.Tensor]:
    """Compute the margin loss and its gradient, with a quarter of the operations of autograd.

    Args:
        vectors: Vectors of s, s', t and, with four roles, t' of all pairs [role x pair, dimension].
        roles: Number of roles: 3 or 4.
        margin: The margin d.

    Returns:
        The loss, a scalar, and its gradient [role x pair, dimension].
    """
    shaped = vectors.unflatten(0, (roles, -1))
    sides, pairs = roles - 2, shaped.shape[1]
    lengths = torch.linalg.vector_norm(shaped, dim=2, keepdim=True).clamp_min(SHORTEST)
    unit = shaped / lengths
    gap = margin - (unit[0] * unit[1]).sum(dim=1)
    hinge = gap + (unit[:sides] * unit[2:]).sum(dim=2)
    loss = hinge.clamp(min=0).sum() / pairs
    # The derivative of the loss by each cosine: of a sentence with its negative it is `active` [side, pair, 1], of the
    # two sentences of a pair minus the sum of `active` over the sides.
    active = ((hinge >= 0).to(hinge.dtype) / pairs).unsqueeze(2)
    # The gradient by the unit vectors: by s it is t times `active`, minus s' times the sum of `active`.
    of_pairs = unit[:2].flip(0) * -active.sum(dim=0)
    of_pairs[:sides].addcmul_(active, unit[2:])
    slope = torch.cat([of_pairs, active * unit[:sides]])
    # The gradient by the vectors themselves: the part along a unit vector changes only the length, so it is removed.
    along = (slope * unit).sum(dim=2, keepdim=True)
    return loss, ((slope - along * unit) / lengths).flatten(0, 1)


class _MarginLoss(torch.autograd.Function):
    """Margin loss with the gradient of `margin_loss_and_gradient`, for autograd."""

    @staticmethod
    def forward(ctx: FunctionCtx, vectors: torch.Tensor, roles: int, margin: float) -> torch.Tensor:
        loss, gradient = margin_loss_and_gradient(vectors, roles, margin)
        ctx.save_for_backward(gradient)
        return loss

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, upstream: torch.Tensor) -> tuple[torch.Tensor, None, None]:  # noqa: ANN401
        (gradient,) = ctx.saved_tensors
        return upstream * gradient, None, None


def similarity_loss(
    vectors: torch.Tensor, teacher: torch.Tensor, *, scale: float = 1.0, weighted: bool = False
) -> torch.Tensor:
    """Compute the mean squared difference of the cosines of all pairs of sentences from the teacher's, a scalar.

    The cosine of a sentence with itself is left out.

    Args:
        vectors: Vectors of the sentences [sentence, dimension].
        teacher: Vectors of the same sentences by the teacher [sentence, teacher dimension].
        scale: Factor of the teacher's distances, 1 - cosine; see `TeacherVectors.scale`.
        weighted: Whether the square of each pair is multiplied by the teacher's cosine, 0 if negative, plus 0.05.
    """
    student, wanted = normalize(vectors, dim=1), normalize(teacher, dim=1)
    cosines = 1 - scale * (1 - wanted @ wanted.T)
    squares = (student @ student.T - cosines).fill_diagonal_(0).square()
    if weighted:
        squares = squares * (cosines.clamp(min=0) + 0.05)
    count = len(vectors)
    return squares.sum() / max(1, count * (count - 1))


def listwise_loss(
    vectors: torch.Tensor, teacher: torch.Tensor, temperature: float, *, scale: float = 1.0
) -> torch.Tensor:
    """Compute the cross-entropy between the teacher's and the student's distributions over neighbours, a scalar.

    The distribution of a sentence over all others is the softmax of their cosines divided by the temperature. The mean
    cross-entropy is multiplied by the temperature, so that its gradient is about as large as that of a loss on
    cosines. Copies of a sentence, for which the teacher has the same vector, are masked.

    Args:
        vectors: Vectors of the sentences [sentence, dimension].
        teacher: Vectors of the same sentences by the teacher [sentence, teacher dimension].
        temperature: Temperature of the softmax; the lower it is, the more only the nearest sentences count.
        scale: Factor of the teacher's distances, 1 - cosine; see `TeacherVectors.scale`.
    """
    student, wanted = normalize(vectors, dim=1), normalize(teacher, dim=1)
    cosines = wanted @ wanted.T
    # Apart from rounding, only copies have a cosine of 1.
    copies = (cosines > 1 - 1e-6).fill_diagonal_(True)
    # Its exp is 0, as that of -inf would be, but its logarithm in `log_softmax` stays finite.
    masked = -1e4
    wanted_shares = (scale * cosines / temperature).masked_fill(copies, masked).softmax(dim=1)
    log_shares = ((student @ student.T) / temperature).masked_fill(copies, masked).log_softmax(dim=1)
    return -temperature * (wanted_shares * log_shares).sum(dim=1).mean()


def teacher_loss(vectors: torch.Tensor, teacher: torch.Tensor, config: TrainConfig, scale: float) -> torch.Tensor:
    """Compute the loss on a teacher's similarities that the settings name, a scalar.

    Args:
        vectors: Vectors of the sentences [sentence, dimension].
        teacher: Vectors of the same sentences by the teacher [sentence, teacher dimension].
        config: Which loss, and its temperature.
        scale: See `TeacherVectors.scale`.
    """
    if config.teacher_loss == "listwise":
        return listwise_loss(vectors, teacher, config.temperature, scale=scale)
    return similarity_loss(vectors, teacher, scale=scale, weighted=config.teacher_loss == "weighted")


def diverged(step: str, loss: float) -> DivergedError:
    """Make the error for a loss that is not finite, or for vectors that are not; `loss` is NaN for these."""
    return DivergedError(
        f"the loss of step {step} is {loss}; lower the learning rate or look for broken initial vectors"
    )


def combined_loss(
    vectors: torch.Tensor,
    keys: np.ndarray,
    sentences: np.ndarray,
    config: TrainConfig,
    teacher: TeacherVectors | None = None,
) -> torch.Tensor:
    """Compute the weighted sum of the margin loss and the loss on a teacher's similarities, a scalar.

    Args:
        vectors: Vectors of the sentences, role after role [role x pair, dimension].
        keys: Keys of all sentences of the mega-batch, by which the teacher's vectors are found [2 x pair].
        sentences: Positions of the sentences in the mega-batch [role, pair]: s, s' and, with a margin loss, t and t'.
        config: Weights and settings of the losses.
        teacher: Vectors of the teacher; None without one.
    """
    terms = []
    if config.margin_weight:
        terms.append(config.margin_weight * margin_loss(*vectors.chunk(len(sentences)), margin=config.margin))
    if teacher is not None:
        # The teacher's similarities are those among the pairs, without their negatives.
        of_pairs = sentences[:2].ravel()
        taught = teacher.of(keys[of_pairs]).to(vectors.device)
        term = teacher_loss(vectors[: len(of_pairs)], taught, config, teacher.scale)
        terms.append(config.teacher_weight * term)
    return torch.stack(terms).sum()


@dataclass
class Pull:
    """A weight that a penalty pulls towards a centre in every step."""

    weight: torch.Tensor  # The weight, of any shape
    strength: float  # The factor lambda, at least 0
    centre: torch.Tensor | None = None  # Values in the shape of the weight, or of its `rows`; None for zeros
    # The distinct rows of a table [row] that are pulled, with a sparse gradient; None for all, with a dense one
    rows: torch.Tensor | None = None

    def penalty(self) -> torch.Tensor:
        """Compute lambda times the squared distance from the centre, a differentiable scalar."""
        weight = self.weight if self.rows is None else embedding(self.rows, self.weight, sparse=True)
        if self.centre is None:
            return self.strength * weight.square().sum()
        self.centre = self.centre.to(weight.device)
        return self.strength * (weight - self.centre).square().sum()


def penalty(pulls: Iterable[Pull]) -> torch.Tensor | float:
    """Return the sum of the penalties of weights; 0.0 if there are none."""
    return sum((pull.penalty() for pull in pulls), 0.0)


def towards_zero(weights: Iterable[torch.Tensor], strength: float) -> list[Pull]:
    """Make the pulls of weights towards zero; frozen weights get none, and no weight does if the strength is 0."""
    return [Pull(weight, strength) for weight in weights if strength and weight.requires_grad]


def towards_initial(weights: Iterable[torch.Tensor], strength: float) -> list[Pull]:
    """Make the pulls of weights towards their current values; see `towards_zero`."""
    return [Pull(weight, strength, weight.detach().clone()) for weight in weights if strength and weight.requires_grad]


def rows_towards_initial(table: torch.Tensor, rows: torch.Tensor, strength: float) -> list[Pull]:
    """Make the pull of some distinct rows [row] of a table towards their current values; see `towards_zero`."""
    return [Pull(table, strength, table.detach()[rows], rows)] if strength and table.requires_grad else []
