//! E11: object defragmentation by price lists: its cost and savings, day by day, against a twin
//! without it.

use senesce_objects::{AZURE_HOT, PriceList, S3_STANDARD};

use super::{Experiment, Outcome};
use crate::{
    Claim, Fact, Figure, Result, Scale,
    tiering_fixture::{OBJECT_BLOCKS, TieringFixture},
};

/// The number of days on which objects may be rewritten, and the number of all days.
const DECIDING: u64 = 30;
const DAYS: u64 = 60;
/// Objects of the file at scales from an eighth on. The decisions do not depend on the number.
const OBJECTS: u64 = 40;
const LEAST_OBJECTS: u64 = 4;
/// Bytes of a full object: its blocks with their trailers, and its table.
const FULL_BYTES: u64 = (16 << 10) + OBJECT_BLOCKS * 4160;

/// The account of the money, in millionths of a dollar.
#[derive(Default)]
struct Ledger {
    /// The savings of each decision in a month, less its cost.
    booked: f64,
    least_booked: f64,
    /// The payments of the twin, less the payments here.
    cash: f64,
    least_cash: f64,
    /// The number of rewritten objects.
    emptied: u64,
    /// The last day with rewritten objects, and the first day after it with a positive `cash`.
    last: u64,
    even: Option<u64>,
}

/// Runs E11.
pub fn run(scale: Scale) -> Result<Outcome> {
    let mut figures = Vec::new();
    // Days until both have recovered the cost.
    let mut slowest = 0.0_f64;
    for (prices, name) in [(S3_STANDARD, "S3"), (AZURE_HOT, "Azure")] {
        let threshold = prices.threshold(FULL_BYTES, OBJECT_BLOCKS);
        let ledger = keep(scale, &prices)?;
        let days = ledger.even.map_or(f64::INFINITY, |day| (day - ledger.last) as f64);
        slowest = slowest.max(days);
        let figure = |what: &str, ours| Figure::new(&format!("{name}: {what}"), ours);
        figures.extend([
            figure("part of an object that lives, up to which it pays", threshold),
            figure("objects rewritten", ledger.emptied as f64),
            figure("booked, least of all days, millionths of a dollar", ledger.least_booked),
            figure("booked in the end", ledger.booked),
            figure("cash, least of all days, millionths of a dollar", ledger.least_cash),
            figure("days from the last decision until cash is above 0", days),
            figure("cash in the end, millionths of a dollar", ledger.cash),
        ]);
    }
    figures.push(Figure::new("days until the cost is back, at the slower of both price lists", slowest).quoted(
        Claim::AtMost(30.0),
        "within a month",
        "5.2",
    ));
    let notes = vec![
        format!(
            "List prices of {}. The paper publishes no threshold. Here each living block costs one GET; one GET for a whole object would pay much earlier.",
            S3_STANDARD.date
        ),
        "Booked: a month of what each decision saves, less its cost. Cash: what a twin without it has paid, less what was paid here, all bytes and requests counted at the store."
            .to_owned(),
    ];
    Ok(Outcome { experiment: Experiment::E11, scale, stages: Vec::new(), figures, notes })
}

fn count_objects(scale: Scale) -> u64 {
    (scale.areas * OBJECTS / Scale::EIGHTH.areas).clamp(LEAST_OBJECTS, OBJECTS)
}

/// The settings, in words.
pub fn facts(scale: Scale) -> Vec<Fact> {
    let (objects, days) = (count_objects(scale), count_days(scale));
    let mut facts = TieringFixture::facts(objects);
    facts.extend([
        Fact::new("days", format!("{days}, objects written anew on the first {} of them", DECIDING.min(days))),
        Fact::new("prices", format!("lists of {}, S3 Standard (US East) and Azure Blob hot (LRS)", S3_STANDARD.date)),
    ]);
    facts
}

fn count_days(scale: Scale) -> u64 {
    (DAYS * scale.turnover_percent / 100).max(2)
}

fn keep(scale: Scale, prices: &PriceList) -> Result<Ledger> {
    let objects = count_objects(scale);
    let (mut with, mut without) = (TieringFixture::new(objects)?, TieringFixture::new(objects)?);
    let mut ledger = Ledger::default();
    for day in 1..=count_days(scale) {
        without.live_a_day()?;
        with.live_a_day()?;
        if day <= DECIDING {
            let done = with.garden().defrag_objects(prices)?;
            ledger.booked += 1e6 * (done.saved_in_a_month - done.cost);
            ledger.emptied += done.emptied;
            if done.emptied > 0 {
                (ledger.last, ledger.even) = (day, None);
            }
        }
        with.end_day(prices)?;
        without.end_day(prices)?;
        ledger.cash = 1e6 * (without.paid() - with.paid());
        ledger.least_booked = ledger.least_booked.min(ledger.booked);
        ledger.least_cash = ledger.least_cash.min(ledger.cash);
        if ledger.even.is_none() && ledger.last > 0 && ledger.cash > 0.0 {
            ledger.even = Some(day);
        }
    }
    with.compare(&without)?;
    Ok(ledger)
}
