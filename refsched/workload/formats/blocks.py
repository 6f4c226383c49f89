"""Hash ids of prompt blocks: do they fit the prompt, and which prefixes are equal."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from refsched.errors import InputError
from refsched.units import Tokens, ceil_div


def check_hashes(hashes: tuple[int, ...], prompt: Tokens, block_tokens: Tokens, name: str) -> tuple[int, ...]:
    """Return the ids if each block of the prompt has one, a partial last block too; raise InputError otherwise."""
    if len(hashes) == ceil_div(prompt, block_tokens):
        return hashes
    least, most = (len(hashes) - 1) * block_tokens + 1, len(hashes) * block_tokens
    fit = f"need {least} to {most} tokens" if hashes else "fit no prompt"
    raise InputError(f"{len(hashes)} ids {fit} at block {block_tokens}, the prompt has {prompt}", field=name)


@dataclass(slots=True)
class Chain:
    """Number prefixes so that equal numbers mean equal content so far, and count what a boundless cache would reuse.

    Files number blocks either by their own content or with all that comes before them; chaining makes both the latter.
    """

    numbers: dict[tuple[int, int], int] = field(default_factory=dict)
    ids: int = 0
    reused: int = 0  # ids in the longest prefix seen before, row by row

    def add(self, hashes: Iterable[int]) -> Sequence[int]:
        """Give the numbers of one prompt's blocks, in order."""
        numbers, known, last = self.numbers, len(self.numbers), -1
        prefix = []
        for each in hashes:
            last = numbers.setdefault((last, each), len(numbers))
            prefix.append(last)
        self.ids += len(prefix)
        self.reused += sum(1 for number in prefix if number < known)
        return prefix
