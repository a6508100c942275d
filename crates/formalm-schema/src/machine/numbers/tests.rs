//! Interval sets and modular sets against the solver.

use rustc_hash::FxHashMap;

use super::*;
use crate::formula::{FALSE, FormulaAtom};
use crate::json::decimal::Decimal;
use crate::json::decimal::pow10;
use crate::json::document::Document;
use crate::options::{JsonSchemaLimits, JsonSchemaOptions};
use crate::schema_reader;

/// All inputs of up to four characters, against the solver and against all completions.
#[test]
fn interval_sets_agree_with_the_solver() {
    let ends = [None, Some("-3"), Some("0.5"), Some("17")];
    let document = Document::read("true").unwrap();
    let schema = schema_reader::read_schema(&document, &[], JsonSchemaOptions::default()).unwrap();
    let mut core =
        SolverContext::new(schema, JsonSchemaOptions::default(), JsonSchemaLimits::default());
    let decimal = |text: &str| Decimal::parse(text).unwrap();
    for low in ends {
        for high in ends {
            for open in 0..4 {
                let units = [None, Some("1"), Some("0.5"), Some("0.1"), Some("4"), Some("30")];
                let variants = units.map(|unit| [(unit, false), (unit, true)]);
                for (unit, whole) in variants.into_iter().flatten() {
                    for more in 0..4 {
                        let mut all = Vec::new();
                        let pair = [low.map(decimal), high.map(decimal)];
                        if let Some(low) = pair[0].clone() {
                            let above = FormulaAtom::GreaterThan(low.clone());
                            let atom =
                                if open & 1 != 0 { above } else { FormulaAtom::AtLeast(low) };
                            all.push(core.base.formulas.atom(atom));
                        }
                        if let Some(high) = pair[1].clone() {
                            let least = FormulaAtom::AtLeast(high.clone());
                            let atom =
                                if open & 2 != 0 { least } else { FormulaAtom::GreaterThan(high) };
                            let atom = core.base.formulas.atom(atom);
                            all.push(core.base.formulas.not(atom));
                        }
                        if let Some(unit) = unit {
                            all.push(
                                core.base.formulas.atom(FormulaAtom::MultipleOf(decimal(unit))),
                            );
                        }
                        if whole {
                            all.push(core.base.formulas.atom(FormulaAtom::IntegerSpelling));
                        }
                        let mut listed = |list: &[&str]| {
                            let list = list.iter().map(|one| FormulaAtom::EqualTo(decimal(one)));
                            let list = list.map(|one| core.base.formulas.atom(one)).collect();
                            core.base.formulas.or(list)
                        };
                        if more & 1 != 0 {
                            all.push(listed(&["3", "0.5", "17", "-3"]));
                        }
                        if more & 2 != 0 {
                            let other = listed(&["7", "17", "-1", "0"]);
                            all.push(core.base.formulas.not(other));
                        }
                        let total = core.base.formulas.and(all);
                        check_interval_set(&mut core, total);
                    }
                }
            }
        }
    }
}

/// Random formulas over comparisons, multiples and integer spellings.
#[test]
fn modular_sets_agree_with_the_solver() {
    let document = Document::read("true").unwrap();
    let schema = schema_reader::read_schema(&document, &[], JsonSchemaOptions::default()).unwrap();
    let mut core =
        SolverContext::new(schema, JsonSchemaOptions::default(), JsonSchemaLimits::default());
    let mut seed = 1u64;
    let mut draw = |most: usize| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) as usize % most
    };
    let mut checked = 0;
    for _ in 0..150 {
        let mut known: Vec<FormulaId> = Vec::new();
        for _ in 0..4 {
            let at = Decimal::parse(["-7", "0", "0.5", "12", "30.25"][draw(5)]).unwrap();
            let unit = Decimal::parse(["2", "3", "0.5", "7", "0.25", "-6"][draw(6)]).unwrap();
            let atoms = [
                FormulaAtom::AtLeast(at.clone()),
                FormulaAtom::GreaterThan(at.clone()),
                FormulaAtom::EqualTo(at),
            ];
            let atom = match draw(7) {
                0 => FormulaAtom::IntegerSpelling,
                one @ 1..4 => atoms[one - 1].clone(),
                _ => FormulaAtom::MultipleOf(unit),
            };
            let id = core.base.formulas.atom(atom);
            known.push(if draw(2) == 0 { id } else { core.base.formulas.not(id) });
        }
        while known.len() > 1 {
            let list: Vec<FormulaId> = (0..2 + draw(2)).filter_map(|_| known.pop()).collect();
            let joined = match draw(4) {
                0 => core.base.formulas.exactly_one(list),
                1 => core.base.formulas.and(list),
                _ => core.base.formulas.or(list),
            };
            known.insert(0, if draw(4) == 0 { core.base.formulas.not(joined) } else { joined });
        }
        let (total, scale) = (known[0], NumberScale::new(&core.base.formulas.atoms(known[0])));
        if total == TRUE || total == FALSE {
            continue;
        }
        let atoms = core.base.formulas.atoms(total);
        let modular = ModularSet::new(&core.base.formulas, total, &atoms, scale.places).unwrap();
        check_against_solver(&mut core, total, &NumberSet::Modular(modular));
        checked += 1;
    }
    assert!(checked > 100, "{checked}");
}

fn check_interval_set(core: &mut SolverContext, total: FormulaId) {
    let scale = NumberScale::new(&core.base.formulas.atoms(total));
    if total != FALSE {
        let bounds = IntervalSet::new(&core.base.formulas, total, scale.places).unwrap();
        check_against_solver(core, total, &NumberSet::Intervals(bounds));
    }
}

fn check_against_solver(core: &mut SolverContext, total: FormulaId, set: &NumberSet) {
    let scale = NumberScale::new(&core.base.formulas.atoms(total));
    let free = total == TRUE;
    let mut residuals: FxHashMap<(bool, NumberResidual), Vec<bool>> = FxHashMap::default();
    let mut open: Vec<(NumberPrefix, u32)> =
        b"-0173".iter().map(|&one| (NumberPrefix::from_first_byte(one), 1)).collect();
    while let Some((digits, length)) = open.pop() {
        core.base.reset_steps();
        let found = NumberQuery::new(core, total, &digits).is_viable().unwrap();
        assert_eq!(set.viable(&digits), Some(found), "{digits:?} {set:?}");
        if !found || length == 3 {
            continue;
        }
        let ends = digits.satisfies(&core.base.formulas, total);
        assert!(set.holds(&digits).is_none_or(|holds| holds == ends), "{digits:?} {set:?}");
        let mut futures = vec![ends];
        for byte in *b"0123456789." {
            let next =
                digits.part_after(byte, free).map(|part| digits.clone().append(part, byte, &scale));
            let viable = match &next {
                Some(next) => NumberQuery::new(core, total, next).is_viable().unwrap(),
                None => false,
            };
            futures.push(viable);
            open.extend(next.filter(|_| viable).map(|next| (next, length + 1)));
        }
        if let Some(residual) = set.residual(&digits) {
            let known =
                residuals.entry((digits.negative, residual)).or_insert_with(|| futures.clone());
            assert_eq!(*known, futures, "{digits:?} {set:?}");
        }
    }
}

#[test]
fn integer_parts_fold_above_every_bound_without_changing_residues() {
    let bound = Decimal::from_integer(100);
    let unit = Decimal::from_integer(7);
    let scale = NumberScale::new(&[FormulaAtom::AtLeast(bound), FormulaAtom::MultipleOf(unit)]);
    for whole in 0..2000u32 {
        let folded = scale.representative(BigInt::from(whole));
        assert_eq!(&folded % 7u32, BigInt::from(whole % 7));
        assert_eq!(folded > BigInt::from(100), whole > 100);
        assert!(folded < pow10(3));
    }
}
