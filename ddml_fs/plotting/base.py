"""What all display classes share."""

from typing import Any, Self


class Display:
    """Data of a plot, computed once and drawn as often as wanted.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Of the last drawing.
    figure_ : matplotlib Figure
    """

    ax_: Any
    figure_: Any

    def plot(self, ax: Any = None) -> Self:
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; a new figure unless given.

        Returns
        -------
        self
        """
        self.ax_ = self.draw(ax)
        self.figure_ = self.ax_.figure
        return self

    def draw(self, ax: Any) -> Any:
        """Draw on the axes, or on new ones where None is given, and return them."""
        raise NotImplementedError
