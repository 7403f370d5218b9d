//! Formulas over the keys of a sweep: `mss * 8 / rtt * 1.22 / sqrt(loss)`.

/// Deeper than anyone writes, and far from the end of the stack.
const DEEPEST: usize = 60;
const LONGEST: usize = 1_000;

/// What is wrong with a formula, in words.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{0}")]
pub struct ExpressionError(String);

/// A formula.
#[derive(Clone, PartialEq, Debug)]
pub struct Expression {
    pub(super) root: Node,
}

#[derive(Clone, PartialEq, Debug)]
pub(super) enum Node {
    Number(f64),
    Name(String),
    Negative(Box<Node>),
    Two(Operator, Box<Node>, Box<Node>),
    Call(Function, Vec<Node>),
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Operator {
    Add,
    Subtract,
    Multiply,
    Divide,
    Power,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Function {
    Sqrt,
    Ln,
    Exp,
    Min,
    Max,
}

const FUNCTIONS: [(&str, Function); 5] = [
    ("sqrt", Function::Sqrt),
    ("ln", Function::Ln),
    ("exp", Function::Exp),
    ("min", Function::Min),
    ("max", Function::Max),
];

impl Expression {
    /// Reads a formula of numbers, these names, `+ - * / ^`, parentheses and the functions `sqrt`, `ln`, `exp`, `min`
    /// and `max`. A name may have a hyphen; the longest one that fits is meant.
    ///
    /// # Errors
    /// What is wrong and where.
    pub fn parse(text: &str, names: &[&str]) -> Result<Self, ExpressionError> {
        if text.len() > LONGEST {
            return Err(ExpressionError(format!("is longer than {LONGEST} bytes")));
        }
        let mut reader = Reader { text, at: 0, names, depth: 0 };
        let root = reader.sum()?;
        reader.space();
        match reader.rest().chars().next() {
            None => Ok(Expression { root }),
            Some(_) => Err(reader.wrong("an operator or the end")),
        }
    }

    /// The names in it.
    pub fn names(&self) -> Vec<&str> {
        let mut all = Vec::new();
        self.root.names(&mut all);
        all
    }

    /// Its value with these values of its names; not a number where one has none.
    pub fn value(&self, of: &dyn Fn(&str) -> Option<f64>) -> f64 {
        self.root.value(of)
    }
}

impl Node {
    fn names<'n>(&'n self, all: &mut Vec<&'n str>) {
        match self {
            Node::Number(_) => {}
            Node::Name(name) => all.push(name),
            Node::Negative(one) => one.names(all),
            Node::Two(_, a, b) => {
                a.names(all);
                b.names(all);
            }
            Node::Call(_, each) => each.iter().for_each(|n| n.names(all)),
        }
    }

    fn value(&self, of: &dyn Fn(&str) -> Option<f64>) -> f64 {
        match self {
            Node::Number(v) => *v,
            Node::Name(name) => of(name).unwrap_or(f64::NAN),
            Node::Negative(one) => -one.value(of),
            Node::Two(operator, a, b) => {
                let (a, b) = (a.value(of), b.value(of));
                match operator {
                    Operator::Add => a + b,
                    Operator::Subtract => a - b,
                    Operator::Multiply => a * b,
                    Operator::Divide => a / b,
                    Operator::Power => libm::pow(a, b),
                }
            }
            Node::Call(function, each) => {
                let mut values = each.iter().map(|n| n.value(of));
                let first = values.next().unwrap_or(f64::NAN);
                match function {
                    Function::Sqrt => first.sqrt(),
                    Function::Ln => libm::log(first),
                    Function::Exp => libm::exp(first),
                    // What has no value must not be passed over, as `f64::min` would.
                    Function::Min => values.fold(first, |a, b| if a.is_nan() || a < b { a } else { b }),
                    Function::Max => values.fold(first, |a, b| if a.is_nan() || a > b { a } else { b }),
                }
            }
        }
    }
}

struct Reader<'t> {
    text: &'t str,
    at: usize,
    names: &'t [&'t str],
    depth: usize,
}

impl<'t> Reader<'t> {
    fn rest(&self) -> &'t str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn space(&mut self) {
        let rest = self.rest();
        self.at += rest.len() - rest.trim_start().len();
    }

    /// Takes the sign if it comes next.
    fn takes(&mut self, sign: char) -> bool {
        self.space();
        let here = self.rest().starts_with(sign);
        self.at += if here { sign.len_utf8() } else { 0 };
        here
    }

    fn wrong(&self, needed: &str) -> ExpressionError {
        let rest = self.rest();
        let found = match rest.chars().next() {
            None => "the end".to_owned(),
            Some(_) => format!("`{}`", rest.chars().take(12).collect::<String>().trim_end()),
        };
        ExpressionError(format!("needs {needed}, not {found}"))
    }

    fn sum(&mut self) -> Result<Node, ExpressionError> {
        let mut left = self.product()?;
        loop {
            let operator = match () {
                () if self.takes('+') => Operator::Add,
                () if self.takes('-') => Operator::Subtract,
                () => return Ok(left),
            };
            left = Node::Two(operator, Box::new(left), Box::new(self.product()?));
        }
    }

    fn product(&mut self) -> Result<Node, ExpressionError> {
        let mut left = self.signed()?;
        loop {
            let operator = match () {
                () if self.takes('*') => Operator::Multiply,
                () if self.takes('/') => Operator::Divide,
                () => return Ok(left),
            };
            left = Node::Two(operator, Box::new(left), Box::new(self.signed()?));
        }
    }

    /// With a sign in front, which binds less than a power: -2^2 is -4.
    fn signed(&mut self) -> Result<Node, ExpressionError> {
        self.deeper(|reader| {
            if reader.takes('-') {
                return Ok(Node::Negative(Box::new(reader.signed()?)));
            }
            let base = reader.atom()?;
            if !reader.takes('^') {
                return Ok(base);
            }
            Ok(Node::Two(Operator::Power, Box::new(base), Box::new(reader.signed()?)))
        })
    }

    fn deeper(
        &mut self,
        read: impl FnOnce(&mut Self) -> Result<Node, ExpressionError>,
    ) -> Result<Node, ExpressionError> {
        self.depth += 1;
        if self.depth > DEEPEST {
            return Err(ExpressionError("is nested too deep".into()));
        }
        let made = read(self);
        self.depth -= 1;
        made
    }

    fn atom(&mut self) -> Result<Node, ExpressionError> {
        if self.takes('(') {
            let inner = self.sum()?;
            return if self.takes(')') { Ok(inner) } else { Err(self.wrong("`)`")) };
        }
        let rest = self.rest();
        if rest.starts_with(|c: char| c.is_ascii_digit() || c == '.') {
            return self.number();
        }
        let word = |c: char| c.is_alphanumeric() || c == '_';
        // A hyphen is part of a name only where there is such a name.
        let ends = |name: &&&str| !rest.get(name.len()..).unwrap_or_default().starts_with(word);
        let names = self.names.iter().filter(|n| rest.starts_with(**n)).filter(ends);
        if let Some(name) = names.max_by_key(|n| n.len()) {
            self.at += name.len();
            return Ok(Node::Name((*name).to_owned()));
        }
        let length = rest.find(|c| !word(c)).unwrap_or(rest.len());
        let name = rest.get(..length).unwrap_or_default();
        if name.is_empty() {
            return Err(self.wrong("a number, a name or `(`"));
        }
        let Some((_, function)) = FUNCTIONS.iter().find(|f| f.0 == name) else {
            let known: Vec<&str> = self.names.iter().copied().chain(FUNCTIONS.iter().map(|f| f.0)).collect();
            return Err(ExpressionError(format!("knows no `{name}`; it knows {}", known.join(", "))));
        };
        self.at += length;
        self.call(name, *function)
    }

    fn call(&mut self, name: &str, function: Function) -> Result<Node, ExpressionError> {
        if !self.takes('(') {
            return Err(self.wrong(&format!("`(` after `{name}`")));
        }
        let mut each = vec![self.sum()?];
        while self.takes(',') {
            each.push(self.sum()?);
        }
        if !self.takes(')') {
            return Err(self.wrong("`,` or `)`"));
        }
        let several = matches!(function, Function::Min | Function::Max);
        match (several, each.len()) {
            (true, 1) => Err(ExpressionError(format!("`{name}` needs two values or more"))),
            (false, 2..) => Err(ExpressionError(format!("`{name}` takes one value"))),
            _ => Ok(Node::Call(function, each)),
        }
    }

    fn number(&mut self) -> Result<Node, ExpressionError> {
        let rest = self.rest();
        let mut length = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        // 1.5e6, but not the e of 2*exp(1).
        if let Some(power) = rest.get(length..).and_then(|r| r.strip_prefix(['e', 'E'])) {
            let digits = power.trim_start_matches(['+', '-']);
            let count = digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len());
            if count > 0 && power.len() - digits.len() <= 1 {
                length += 1 + (power.len() - digits.len()) + count;
            }
        }
        let text = rest.get(..length).unwrap_or_default();
        let number = text.parse::<f64>().ok().filter(|v| v.is_finite());
        let number = number.ok_or_else(|| ExpressionError(format!("`{text}` is no number")))?;
        self.at += length;
        // Units belong to constants and to values of sweeps.
        if self.rest().starts_with(|c: char| c.is_alphanumeric() || c == '_') {
            let unit: String = self.rest().chars().take_while(|c| c.is_alphanumeric()).collect();
            return Err(ExpressionError(format!("`{text}{unit}`: numbers in it have no unit; give it as a constant")));
        }
        Ok(Node::Number(number))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAMES: [&str; 5] = ["mss", "rtt", "loss", "receive-buffer", "receive"];

    fn value(text: &str) -> f64 {
        let of = |name: &str| match name {
            "mss" => Some(1460.0),
            "rtt" => Some(0.1),
            "loss" => Some(0.01),
            "receive-buffer" => Some(7.0),
            "receive" => Some(5.0),
            _ => None,
        };
        Expression::parse(text, &NAMES).unwrap_or_else(|e| panic!("{text}: {e}")).value(&of)
    }

    #[test]
    fn formulas_have_the_usual_order() {
        for (text, expected) in [
            ("1 + 2 * 3", 7.0),
            ("(1 + 2) * 3", 9.0),
            ("8 - 3 - 2", 3.0),
            ("8 / 4 / 2", 1.0),
            ("2 ^ 3 ^ 2", 512.0),
            ("-2 ^ 2", -4.0),
            ("2 ^ -1", 0.5),
            ("--3", 3.0),
            ("1.5e3 + .5", 1500.5),
            ("2e-1*10", 2.0),
            ("sqrt(16) + max(1, 2, 3) - min(4, 2)", 5.0),
            ("ln(exp(2))", 2.0),
            ("receive-buffer - receive", 2.0),
            ("receive - 1", 4.0),
            ("receive-1", 4.0),
        ] {
            assert!((value(text) - expected).abs() < 1e-12, "{text}: {}", value(text));
        }
        // The square-root law: 1.22 segments a round trip for each square root of the loss.
        assert!((value("mss*8/rtt*1.22/sqrt(loss)") - 1_424_960.0).abs() < 1e-6);
    }

    #[test]
    fn what_has_no_value_has_none_in_the_end() {
        let parse = |text| Expression::parse(text, &NAMES).expect("fine");
        assert!(parse("min(mss, 1)").value(&|_| None).is_nan() && parse("max(1, mss)").value(&|_| None).is_nan());
        assert_eq!(parse("mss + rtt * mss").names(), ["mss", "rtt", "mss"]);
        assert!(value("1 / (rtt - rtt)").is_infinite());
    }

    #[test]
    fn mistakes_say_what_is_needed() {
        for (text, said) in [
            ("", "needs a number, a name or `(`, not the end"),
            ("1 +", "needs a number, a name or `(`, not the end"),
            ("(1 + 2", "needs `)`, not the end"),
            ("1 2", "needs an operator or the end, not `2`"),
            ("mss * ? 3", "needs a number, a name or `(`, not `? 3`"),
            ("msss", "knows no `msss`; it knows mss, rtt, loss, receive-buffer, receive, sqrt, ln, exp, min, max"),
            ("sqrt 2", "needs `(` after `sqrt`, not `2`"),
            ("sqrt(1, 2)", "`sqrt` takes one value"),
            ("min(1)", "`min` needs two values or more"),
            ("1.2.3", "`1.2.3` is no number"),
            ("1e999", "`1e999` is no number"),
            ("30ms", "`30ms`: numbers in it have no unit; give it as a constant"),
        ] {
            assert_eq!(Expression::parse(text, &NAMES).expect_err(text).to_string(), said, "{text}");
        }
        for deep in ["(".repeat(900), "-".repeat(900), "2^".repeat(450), "sqrt(".repeat(180)] {
            let wrong = Expression::parse(&deep, &NAMES).expect_err("too deep").to_string();
            assert_eq!(wrong, "is nested too deep");
        }
        // A long sum is not deep, but has an end.
        assert!((value(&"1+".repeat(500)[..999]) - 500.0).abs() < 1e-9);
        assert!(
            Expression::parse(&"1+".repeat(501), &NAMES).is_err_and(|e| e.to_string().contains("longer than 1000"))
        );
    }
}
