"""Runge-Kutta tableaux, explicit and additive (implicit-explicit): data only, one entry each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

Row = tuple[str | int | Fraction, ...]


def rational(rows: Sequence[Row], width: int) -> np.ndarray:
    """Exact fractions (row, width); zeros complete a short row."""
    padded = [(*row, *(0,) * (width - len(row))) for row in rows]
    return np.array([[Fraction(entry) for entry in row] for row in padded], dtype=object)


@dataclass(frozen=True)
class Tableau:
    """k_i = f(t + c_i h, y + h Σ_j a_ij k_j),  y ← y + h Σ_i b_i k_i; rows from stage 1 on."""

    order: int
    rows: tuple[Row, ...]
    weights: Row

    @property
    def a(self) -> np.ndarray:
        """Stage coefficients (stage, stage), strictly lower triangular."""
        return rational(((), *self.rows), len(self.weights)).astype(float)

    @property
    def b(self) -> np.ndarray:
        """Weights (stage)."""
        return rational((self.weights,), len(self.weights))[0].astype(float)

    @property
    def c(self) -> np.ndarray:
        """Nodes (stage): row sums of a."""
        return rational(((), *self.rows), len(self.weights)).sum(axis=1).astype(float)


EXPLICIT = {
    "euler": Tableau(1, (), (1,)),
    "midpoint": Tableau(2, (("1/2",),), (0, 1)),
    "heun": Tableau(2, ((1,),), ("1/2", "1/2")),
    "rk3": Tableau(3, (("1/2",), (-1, 2)), ("1/6", "2/3", "1/6")),
    "rk4": Tableau(4, (("1/2",), (0, "1/2"), (0, 0, 1)), ("1/6", "1/3", "1/3", "1/6")),
}


@dataclass(frozen=True)
class AdditivePair:
    """For y' = f(t, y) + g(t, y), f implicit and g explicit, with nodes c common to both.

    y_i = y + h Σ_j (aI_ij f_j + aE_ij g_j),  y ← y + h Σ_i (bI_i f_i + bE_i g_i);
    rows from stage 1 on, stage 0 is y itself. The embedded weights serve both halves.
    """

    order: int
    implicit_rows: tuple[Row, ...]
    explicit_rows: tuple[Row, ...]
    implicit_weights: Row
    explicit_weights: Row
    embedded_weights: Row | None = None
    embedded_order: int | None = None

    @property
    def stages(self) -> int:
        """Number of stages, stage 0 included."""
        return len(self.explicit_weights)

    @property
    def a_implicit(self) -> np.ndarray:
        """Implicit coefficients (stage, stage), lower triangular with the diagonal."""
        return rational(((), *self.implicit_rows), self.stages).astype(float)

    @property
    def a_explicit(self) -> np.ndarray:
        """Explicit coefficients (stage, stage), strictly lower triangular."""
        return rational(((), *self.explicit_rows), self.stages).astype(float)

    @property
    def b_implicit(self) -> np.ndarray:
        """Implicit weights (stage)."""
        return rational((self.implicit_weights,), self.stages)[0].astype(float)

    @property
    def b_explicit(self) -> np.ndarray:
        """Explicit weights (stage)."""
        return rational((self.explicit_weights,), self.stages)[0].astype(float)

    @property
    def c(self) -> np.ndarray:
        """Nodes (stage): row sums of either half."""
        return rational(((), *self.explicit_rows), self.stages).sum(axis=1).astype(float)

    @property
    def embedded(self) -> np.ndarray | None:
        """Embedded weights (stage) of both halves, where the pair has them."""
        if self.embedded_weights is None:
            return None
        return rational((self.embedded_weights,), self.stages)[0].astype(float)

    @property
    def is_closed(self) -> bool:
        """Whether the step ends on its last stage: last rows equal to the weights."""
        rows = (((), *self.implicit_rows)[-1], ((), *self.explicit_rows)[-1])
        weights = (self.implicit_weights, self.explicit_weights)
        return bool((rational(rows, self.stages) == rational(weights, self.stages)).all())

    def closed(self) -> AdditivePair:
        """The same step ending on a stage: where needed one is appended, with the weights as rows.

        The appended stage has c = 1 and a zero diagonal: it solves nothing, but a constraint
        (a projection) that every stage obeys then holds at the end of the step too.
        """
        if self.is_closed:
            return self
        embedded = self.embedded_weights
        return replace(
            self,
            implicit_rows=(*self.implicit_rows, self.implicit_weights),
            explicit_rows=(*self.explicit_rows, self.explicit_weights),
            implicit_weights=(*self.implicit_weights, 0),
            explicit_weights=(*self.explicit_weights, 0),
            embedded_weights=None if embedded is None else (*embedded, 0),
        )

    def explicit_half(self) -> AdditivePair:
        """The explicit tableau for both terms."""
        return replace(
            self, implicit_rows=self.explicit_rows, implicit_weights=self.explicit_weights
        )


def as_pair(tableau: Tableau) -> AdditivePair:
    """An explicit tableau for both terms."""
    rows, weights = tableau.rows, tableau.weights
    return AdditivePair(tableau.order, rows, rows, weights, weights)


def _ending_on_stage(
    order: int, implicit: tuple[Row, ...], explicit: tuple[Row, ...]
) -> AdditivePair:
    """Pair whose weights are its last rows."""
    return AdditivePair(order, implicit, explicit, implicit[-1], (*explicit[-1], 0))


def _common_weights(
    order: int,
    diagonal: str,
    implicit: tuple[Row, ...],
    explicit: tuple[Row, ...],
    weights: Row,
    embedded: Row,
) -> AdditivePair:
    """Pair with one diagonal entry, one set of weights, and these as the last implicit row.

    The diagonal, and the last of the weights equal to it, are left out of the arguments.
    """
    rows = tuple((*row, diagonal) for row in (*implicit, weights))
    return AdditivePair(order, rows, explicit, rows[-1], rows[-1], embedded, order - 1)


_ARS_DIAGONAL = Fraction(1 - 0.5**0.5)  # 1 - 1/√2, the nearest double
_ARS_FIRST = 1 - 1 / (2 * _ARS_DIAGONAL)

# ars222, ars443: Ascher, Ruuth, Spiteri 1997; koto: Koto 2008; ark3-5: Kennedy, Carpenter 2003.
ADDITIVE = {
    "euler": _ending_on_stage(1, implicit=((0, 1),), explicit=((1,),)),
    "trapezoid": _ending_on_stage(
        2,
        implicit=(("1/2", "1/2"), ("1/2", "1/2", 0)),
        explicit=((1,), ("1/2", "1/2")),
    ),
    "koto": _ending_on_stage(
        2,
        implicit=((0, 1), (0, "-1/2", 1), (0, -1, 1, 1)),
        explicit=((1,), ("1/2", 0), (0, 0, 1)),
    ),
    "ars222": _ending_on_stage(
        2,
        implicit=((0, _ARS_DIAGONAL), (0, 1 - _ARS_DIAGONAL, _ARS_DIAGONAL)),
        explicit=((_ARS_DIAGONAL,), (_ARS_FIRST, 1 - _ARS_FIRST)),
    ),
    "ars443": _ending_on_stage(
        3,
        implicit=(
            (0, "1/2"),
            (0, "1/6", "1/2"),
            (0, "-1/2", "1/2", "1/2"),
            (0, "3/2", "-3/2", "1/2", "1/2"),
        ),
        explicit=(
            ("1/2",),
            ("11/18", "1/18"),
            ("5/6", "-5/6", "1/2"),
            ("1/4", "7/4", "3/4", "-7/4"),
        ),
    ),
    "ark3": _common_weights(
        3,
        diagonal="1767732205903/4055673282236",
        implicit=(
            ("1767732205903/4055673282236",),
            ("2746238789719/10658868560708", "-640167445237/6845629431997"),
        ),
        explicit=(
            ("1767732205903/2027836641118",),
            ("5535828885825/10492691773637", "788022342437/10882634858940"),
            (
                "6485989280629/16251701735622",
                "-4246266847089/9704473918619",
                "10755448449292/10357097424841",
            ),
        ),
        weights=(
            "1471266399579/7840856788654",
            "-4482444167858/7529755066697",
            "11266239266428/11593286722821",
        ),
        embedded=(
            "2756255671327/12835298489170",
            "-10771552573575/22201958757719",
            "9247589265047/10645013368117",
            "2193209047091/5459859503100",
        ),
    ),
    "ark4": _common_weights(
        4,
        diagonal="1/4",
        implicit=(
            ("1/4",),
            ("8611/62500", "-1743/31250"),
            ("5012029/34652500", "-654441/2922500", "174375/388108"),
            (
                "15267082809/155376265600",
                "-71443401/120774400",
                "730878875/902184768",
                "2285395/8070912",
            ),
        ),
        explicit=(
            ("1/2",),
            ("13861/62500", "6889/62500"),
            (
                "-116923316275/2393684061468",
                "-2731218467317/15368042101831",
                "9408046702089/11113171139209",
            ),
            (
                "-451086348788/2902428689909",
                "-2682348792572/7519795681897",
                "12662868775082/11960479115383",
                "3355817975965/11060851509271",
            ),
            (
                "647845179188/3216320057751",
                "73281519250/8382639484533",
                "552539513391/3454668386233",
                "3354512671639/8306763924573",
                "4040/17871",
            ),
        ),
        weights=("82889/524892", 0, "15625/83664", "69875/102672", "-2260/8211"),
        embedded=(
            "4586570599/29645900160",
            0,
            "178811875/945068544",
            "814220225/1159782912",
            "-3700637/11593932",
            "61727/225920",
        ),
    ),
    "ark5": _common_weights(
        5,
        diagonal="41/200",
        implicit=(
            ("41/200",),
            ("41/400", "-567603406766/11931857230679"),
            ("683785636431/9252920307686", 0, "-110385047103/1367015193373"),
            (
                "3016520224154/10081342136671",
                0,
                "30586259806659/12414158314087",
                "-22760509404356/11113319521817",
            ),
            (
                "218866479029/1489978393911",
                0,
                "638256894668/5436446318841",
                "-1179710474555/5321154724896",
                "-60928119172/8023461067671",
            ),
            (
                "1020004230633/5715676835656",
                0,
                "25762820946817/25263940353407",
                "-2161375909145/9755907335909",
                "-211217309593/5846859502534",
                "-4269925059573/7827059040749",
            ),
        ),
        explicit=(
            ("41/100",),
            ("367902744464/2072280473677", "677623207551/8224143866563"),
            ("1268023523408/10340822734521", 0, "1029933939417/13636558850479"),
            (
                "14463281900351/6315353703477",
                0,
                "66114435211212/5879490589093",
                "-54053170152839/4284798021562",
            ),
            (
                "14090043504691/34967701212078",
                0,
                "15191511035443/11219624916014",
                "-18461159152457/12425892160975",
                "-281667163811/9011619295870",
            ),
            (
                "19230459214898/13134317526959",
                0,
                "21275331358303/2942455364971",
                "-38145345988419/4862620318723",
                "-1/8",
                "-1/8",
            ),
            (
                "-19977161125411/11928030595625",
                0,
                "-40795976796054/6384907823539",
                "177454434618887/12078138498510",
                "782672205425/8267701900261",
                "-69563011059811/9646580694205",
                "7356628210526/4942186776405",
            ),
        ),
        weights=(
            "-872700587467/9133579230613",
            0,
            0,
            "22348218063261/9555858737531",
            "-1143369518992/8141816002931",
            "-39379526789629/19018526304540",
            "32727382324388/42900044865799",
        ),
        embedded=(
            "-975461918565/9796059967033",
            0,
            0,
            "78070527104295/32432590147079",
            "-548382580838/3424219808633",
            "-33438840321285/15594753105479",
            "3629800801594/4656183773603",
            "4035322873751/18575991585200",
        ),
    ),
}
