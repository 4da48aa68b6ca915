"""Tables that were listed after the last rule of the selector was chosen.

Nothing was chosen on them. The list and all definitions were written before any of them was scored,
from the names and values of the columns alone. Two labels that a single column nearly gave away
were replaced, also before.
"""

from experiments.shifts.confirmation import Table, above, division, is_, period


def _region(table):
    names = ["ne", "nc", "south"]
    return table[names].idxmax(axis=1).where(table[names].any(axis=1), "west")


def _school(table):
    return table["educ"].clip(10, 16) // 2 * 2


def _communes(table):
    return table["commune"] // 40


TABLES = {
    "diamonds": Table("ggplot2/diamonds", is_("cut", "Ideal"), "color", "cut"),
    "loans": Table(
        path="openintro/loans_full_schema",
        label=above("interest_rate", 12),
        domain=division,
        left_out="interest_rate installment *grade balance paid_* loan_status issue_month "
        "initial_listing_status emp_title state",
    ),
    "births": Table(
        path="medicaldata/opt",
        label=is_("Preg.ended...37.wk", "Yes"),
        domain="Clinic",
        left_out="PID Preg* Birth* GA* Apgar* Fetal* Any.SAE* V3* V5* X* O* ETXU* Tx* Local* "
        "Topical* EDC* Completed* N.ext* N.perm* N.PAL* Bact* Gest* Poly* Gon* Chl* Strep* "
        "Traum* UTI Pre.ecl*",
    ),
    "covid": Table(
        path="medicaldata/covid_testing",
        label=is_("result", "positive"),
        domain="demo_group",
        left_out="result ct_result subject_id fake_* test_id clinic_name",
    ),
    "stops": Table(
        path="carData/MplsStops",
        label=is_("citationIssued", "YES"),
        domain="policePrecinct",
        left_out="citationIssued idNum date neighborhood",
    ),
    "wives": Table("Ecdat/HI", is_("whi", "yes"), "region", "whi hhi2 wght"),
    "rodents": Table(
        path="ratdat/complete",
        label=is_("sex", "M"),
        domain="plot_type",
        left_out="sex record_id genus species taxa plot_id",
    ),
    "sport": Table("openintro/yrbss", above("physically_active_7d", 4), "grade", "physically*"),
    "callback": Table(
        path="openintro/labor_market_discrimination",
        label=is_("call", 1),
        domain="occup_broad",
        left_out="call first_name ad_id occup_specific",
    ),
    "wages": Table(
        path="stevedata/gss_wages",
        label=above("realrinc", 16_500),
        domain=period("year", 10),
        left_out="realrinc occ10 year",
    ),
    "mobile": Table("modeldata/mlc_churn", is_("churn", "yes"), division, "churn state"),
    "college": Table("wooldridge/twoyear", above("lwage", 2.28), _region, "lwage id ne nc south"),
    "injury": Table(
        path="wooldridge/injury",
        label=above("durat", 4),
        domain="injtype",
        left_out="*durat injdes head neck upextr trunk low* occdis",
    ),
    "mothers": Table(  # without the family's income, which less others' income is that from work
        path="wooldridge/labsup",
        label=is_("worked", 1),
        domain=_school,
        left_out="worked weeks hours labinc faminc educ",
    ),
    "pharmacy": Table("Ecdat/VietNamI", above("pharvis", 0), _communes, "pharvis commune"),
    "baseball": Table(
        "plyr/baseball", above("sb", 2), period("year", 20), "sb cs id team lg stint year"
    ),
    "crime": Table(
        path="wooldridge/crime4",
        label=above("crmrte", 0.0284),
        domain="year",
        left_out="*crmrte county d8? cl*",
    ),
    "force": Table(
        path="openintro/mn_police_use_of_force",
        label=is_("subject_injury", "Yes"),
        domain="precinct",
        left_out="subject_injury response_datetime neighborhood",
    ),
}
