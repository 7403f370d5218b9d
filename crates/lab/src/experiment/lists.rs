//! Files of an experiment that hold lists: claims, figures, and what others measured.

use super::Open;
use crate::claims::{Claim, Defaults, Shape};
use crate::document::{self, Origin, Part, Problem, Table};
use crate::reference::{self, Reference};
use crate::scenario::{self, Scenario};

/// Reads a file that has nothing but these lists of tables.
pub(super) fn lists(file: &str, text: &str, known: &[&str]) -> Result<Table, Problem> {
    let table = document::parse(&Origin::of_file(file), text)?;
    if let Some(other) = table.keys().find(|k| !known.contains(k)) {
        return Err(Part::new("", &table).unknown(other, known));
    }
    Ok(table)
}

/// What others measured, as a scenario names it.
pub(super) fn references_of(s: &Scenario, shapes: &[Shape<'_>]) -> Result<Vec<Reference>, Problem> {
    let own: Vec<Shape<'_>> = shapes.iter().filter(|o| o.name == s.name).cloned().collect();
    let read = |(r, at): (&Reference, &Origin)| {
        let file = scenario::beside(s.file(), &r.file);
        reference::read(r.clone(), at, &file, &own)
    };
    s.references.iter().zip(&s.references_at).map(read).collect()
}

/// What others measured, as a file of claims or figures names it. `before` and `path` make the name of that file.
pub(super) fn references_in(
    table: &Table,
    before: &str,
    path: &str,
    open: Open<'_>,
    shapes: &[Shape<'_>],
) -> Result<Vec<Reference>, Problem> {
    let (bare, at) = document::read_list::<Reference>(table, "reference", "name")?;
    let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
    let read = |(mut r, at): (Reference, Origin)| {
        let file = normal(folder, &r.file);
        let place = format!("reference `{}`", r.name);
        r.text = open(&file).map_err(|e| Problem::of_key(&place, "file", &at, e))?;
        reference::read(r, &at, &format!("{before}{file}"), shapes)
    };
    bare.into_iter().zip(at).map(read).collect()
}

/// The claims of a file, with the place of each and its defaults filled in.
pub(super) fn claims_of(table: &Table) -> Result<(Vec<Claim>, Vec<Origin>), Problem> {
    let defaults: Defaults = match table.get("defaults") {
        Some(node) => {
            let inner = node.as_table().ok_or_else(|| Part::new("", table).at("defaults", "needs [defaults]"))?;
            document::read(Part::new("[defaults]", inner))?
        }
        None => Defaults::default(),
    };
    if defaults.printed_runs == Some(0) {
        let inner = table.table("defaults").unwrap_or(table);
        return Err(Part::new("[defaults]", inner).at("printed-runs", "is 1 or more"));
    }
    let (mut claims, at) = document::read_list::<Claim>(table, "claim", "id")?;
    claims.iter_mut().for_each(|c| defaults.fill(c));
    Ok((claims, at))
}

/// `folder/name` without `..`.
pub(super) fn normal(folder: &str, name: &str) -> String {
    let mut parts: Vec<&str> = folder.split('/').filter(|p| !p.is_empty()).collect();
    for part in name.split('/') {
        match part {
            ".." => drop(parts.pop()),
            "." | "" => {}
            part => parts.push(part),
        }
    }
    parts.join("/")
}

#[cfg(test)]
mod tests {
    use crate::experiment::tests::SCENARIO;
    use crate::experiment::{Experiment, of_folder};

    const REFERENCE: &str = r#"
[[reference]]
name = "ns-2"
file = "measured/ns2.csv"
metric = "speed.goodput"
unit = "Mbit/s"
"#;
    const MEASURED: &str = "rbuf,value,low,high\n16KB,1.5,1.4,1.6\n64KB,1.9,,\n";

    fn folder(scenario: &str, claims: &str, measured: &str) -> Result<Experiment, String> {
        let open = |path: &str| match path {
            "experiment.toml" => Ok("name = \"e\"\ntitle = \"E\"\nscenarios = [\"one/scenario.toml\"]\n\
                                     claims = [\"claims.toml\"]\n"
                .to_owned()),
            "one/scenario.toml" => Ok(scenario.to_owned()),
            "claims.toml" => Ok(claims.to_owned()),
            "measured/ns2.csv" | "one/measured/ns2.csv" => Ok(measured.to_owned()),
            other => Err(format!("there is no file `{other}`")),
        };
        of_folder("e/", &open).map_err(|e| e.to_string())
    }

    #[test]
    fn what_others_measured_is_read_beside_the_file_that_names_it() {
        let by_claims = folder(SCENARIO, REFERENCE, MEASURED).expect("fine").about.references;
        let by_scenario = folder(&format!("{SCENARIO}{REFERENCE}"), "", MEASURED).expect("fine").about.references;
        assert_eq!((by_claims.len(), &by_claims), (1, &by_scenario));
        let values: Vec<_> = by_claims[0].rows.iter().map(|r| (r.at["rbuf"].as_str(), r.value, r.interval)).collect();
        assert_eq!(values, [("16KB", 1.5e6, Some((1.4e6, 1.6e6))), ("64KB", 1.9e6, None)]);
        // The text is not kept beside what it says.
        assert!(by_claims[0].text.is_empty());
    }

    #[test]
    fn mistakes_are_named_with_the_file_and_line_that_has_them() {
        let wrong = |claims: &str, measured: &str| folder(SCENARIO, claims, measured).map(drop).expect_err("a mistake");
        let row = wrong(REFERENCE, &MEASURED.replace("1.9", "fast"));
        assert_eq!(row, "e/measured/ns2.csv:3: `value`: needs a number, not `fast`");
        let lost = wrong(&REFERENCE.replace("ns2.csv", "ns3.csv"), MEASURED);
        assert_eq!(lost, "e/claims.toml:3: reference `ns-2`: `file`: there is no file `measured/ns3.csv`");
        let key = wrong(&REFERENCE.replace("unit", "units"), MEASURED);
        assert_eq!(key, "e/claims.toml:6: reference `ns-2`: unknown key `units`; did you mean `unit`?");
        let in_scenario = folder(&format!("{SCENARIO}{REFERENCE}"), "", &MEASURED.replace("64KB", "65KB"));
        assert_eq!(
            in_scenario.map(drop).expect_err("a mistake"),
            "e/one/measured/ns2.csv:3: scenario `one` has no `rbuf` of 65KB; it has 16KB, 64KB"
        );
        let both = "compare = { key = \"scenario\", a = \"one\", b = \"two\", as = \"ratio\" }\n";
        assert!(
            wrong(&format!("{REFERENCE}{both}"), MEASURED)
                .starts_with("e/claims.toml:3: reference `ns-2`: `compare`: scenarios are compared")
        );
    }
}
