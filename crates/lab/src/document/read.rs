//! From values that know their lines to structures, by serde: what serde finds wrong keeps its kind and its place.

use super::problem::unknown;
use super::{Entry, Node, Origin, Part, Problem, Table, Value};
use core::fmt;
use serde::de::value::StrDeserializer;
use serde::de::{
    DeserializeOwned, DeserializeSeed, Deserializer, EnumAccess, Error, Expected, IntoDeserializer, MapAccess,
    SeqAccess, Unexpected, VariantAccess, Visitor,
};
use std::collections::btree_map;

/// Reads a part of a file.
pub(crate) fn read<T: DeserializeOwned>(part: Part<'_>) -> Result<T, Problem> {
    T::deserialize(TableReader(part.table)).map_err(|fault| fault.in_part(part))
}

/// Reads the tables of a list, `[[list]]`, each called after the value of `key`, and where that is.
pub(crate) fn read_list<T: DeserializeOwned>(
    whole: &Table,
    list: &str,
    key: &str,
) -> Result<(Vec<T>, Vec<Origin>), Problem> {
    let Some(node) = whole.get(list) else { return Ok((Vec::new(), Vec::new())) };
    let wrong = || Part::new("", whole).at(list, format!("needs [[{list}]]"));
    let one = |node: &Node| {
        let table = node.as_table().ok_or_else(wrong)?;
        let name = format!("{list} `{}`", table.text(key).unwrap_or_default());
        let at = table.get(key).map_or(&table.at, |name| &name.at).clone();
        Ok((read(Part::new(&name, table))?, at))
    };
    let all = node.as_list().ok_or_else(wrong)?.iter().map(one).collect::<Result<Vec<_>, _>>()?;
    Ok(all.into_iter().unzip())
}

impl Part<'_> {
    /// Reads its table as the variant `kind` of an enumeration.
    pub(crate) fn read_variant<T: DeserializeOwned>(self, kind: &str) -> Result<T, ReadError> {
        let fault = |fault: Fault| match fault.wrong {
            Wrong::Variant { known, .. } if fault.path.is_empty() => ReadError::Kind(known),
            _ => ReadError::Problem(fault.in_part(self)),
        };
        T::deserialize(Variant { kind, content: self.table }).map_err(fault)
    }
}

/// Why a variant cannot be read.
pub(crate) enum ReadError {
    /// There is none of this name, but these.
    Kind(&'static [&'static str]),
    /// Its keys or their values.
    Problem(Problem),
}

/// A value that does not fit the type it is read as, with the way to it.
#[derive(Debug)]
pub(crate) struct Fault {
    wrong: Wrong,
    /// Keys that lead to it, the innermost first.
    path: Vec<String>,
    at: Option<Origin>,
}

#[derive(Debug)]
enum Wrong {
    Unknown { key: String, known: &'static [&'static str] },
    Variant { name: String, known: &'static [&'static str] },
    Missing(&'static str),
    Says(String),
}

impl Fault {
    fn new(wrong: Wrong) -> Self {
        Fault { wrong, path: Vec::new(), at: None }
    }

    /// This fault at this place, unless it has one further in.
    fn at(mut self, at: &Origin) -> Self {
        self.at.get_or_insert_with(|| at.clone());
        self
    }

    fn beneath(mut self, key: &str) -> Self {
        self.path.push(key.to_owned());
        self
    }

    fn in_part(mut self, part: Part<'_>) -> Problem {
        let at = self.at.as_ref().unwrap_or(&part.table.at);
        self.path.reverse();
        let key = self.path.join(".");
        let problem = match &self.wrong {
            Wrong::Unknown { .. } => Problem::of_unknown_key(&key, at, self.to_string()),
            _ if key.is_empty() => Problem::new(at, self.to_string()),
            _ => Problem::of_key("", &key, at, self.to_string()),
        };
        if part.name.is_empty() { problem } else { problem.inside(part.name) }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.wrong {
            Wrong::Unknown { key, known } => f.write_str(&unknown("key", key, known)),
            Wrong::Variant { name, known } => f.write_str(&unknown("value", name, known)),
            Wrong::Missing(key) => write!(f, "the key `{key}` is missing"),
            Wrong::Says(what) => f.write_str(what),
        }
    }
}

impl std::error::Error for Fault {}

impl Error for Fault {
    fn custom<T: fmt::Display>(what: T) -> Self {
        Fault::new(Wrong::Says(what.to_string()))
    }

    fn invalid_type(found: Unexpected<'_>, needed: &dyn Expected) -> Self {
        Fault::custom(format_args!("needs {needed}, not {}", Found(found)))
    }

    fn invalid_value(found: Unexpected<'_>, needed: &dyn Expected) -> Self {
        Fault::invalid_type(found, needed)
    }

    fn unknown_field(key: &str, known: &'static [&'static str]) -> Self {
        Fault::new(Wrong::Unknown { key: key.to_owned(), known })
    }

    fn unknown_variant(name: &str, known: &'static [&'static str]) -> Self {
        Fault::new(Wrong::Variant { name: name.to_owned(), known })
    }

    fn missing_field(key: &'static str) -> Self {
        Fault::new(Wrong::Missing(key))
    }
}

/// A value where something else is needed.
struct Found<'f>(Unexpected<'f>);

impl fmt::Display for Found<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Unexpected::Str(text) => write!(f, "the text `{text}`"),
            Unexpected::Signed(n) => write!(f, "the number {n}"),
            Unexpected::Unsigned(n) => write!(f, "the number {n}"),
            Unexpected::Float(n) => write!(f, "the number {n}"),
            Unexpected::Bool(b) => write!(f, "{b}"),
            Unexpected::Seq => f.write_str("a list"),
            Unexpected::Map => f.write_str("a table"),
            other => write!(f, "{other}"),
        }
    }
}

impl Node {
    fn found(&self) -> Found<'_> {
        Found(match &self.value {
            Value::Text(text) => Unexpected::Str(text),
            Value::Integer(n) => Unexpected::Signed(*n),
            Value::Float(n) => Unexpected::Float(*n),
            Value::Boolean(b) => Unexpected::Bool(*b),
            Value::Date(_) => Unexpected::Other("a date or a time of day"),
            Value::List(_) => Unexpected::Seq,
            Value::Table(_) => Unexpected::Map,
        })
    }

    fn needs(&self, what: &str) -> Fault {
        Fault::custom(format_args!("needs {what}, not {}", self.found())).at(&self.at)
    }
}

/// A whole number of a range that the value does not have, or no number.
macro_rules! whole_numbers {
    ($($name:ident: $of:ty => $visit:ident),*) => {$(
        fn $name<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
            let range = || format!("a whole number from {} to {}", <$of>::MIN, <$of>::MAX);
            let Value::Integer(n) = self.value else { return Err(self.needs("a whole number")) };
            let n = <$of>::try_from(n).map_err(|_| self.needs(&range()))?;
            visitor.$visit(n).map_err(|fault: Fault| fault.at(&self.at))
        }
    )*};
}

impl<'de> Deserializer<'de> for &'de Node {
    type Error = Fault;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        let read = match &self.value {
            Value::Text(text) => visitor.visit_borrowed_str(text),
            Value::Integer(n) => visitor.visit_i64(*n),
            Value::Float(n) => visitor.visit_f64(*n),
            Value::Boolean(b) => visitor.visit_bool(*b),
            Value::Date(date) => visitor.visit_string(date.to_string()),
            Value::List(list) => visitor.visit_seq(Elements(list.iter())),
            Value::Table(table) => visitor.visit_map(Entries::of(table)),
        };
        read.map_err(|fault| fault.at(&self.at))
    }

    whole_numbers! {
        deserialize_u8: u8 => visit_u8, deserialize_u16: u16 => visit_u16, deserialize_u32: u32 => visit_u32,
        deserialize_u64: u64 => visit_u64, deserialize_i64: i64 => visit_i64
    }

    fn deserialize_f64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        match self.value {
            Value::Integer(_) | Value::Float(_) => self.deserialize_any(visitor),
            _ => Err(self.needs("a number")),
        }
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        match self.value {
            Value::Boolean(_) => self.deserialize_any(visitor),
            _ => Err(self.needs("true or false")),
        }
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        match self.value {
            Value::Text(_) => self.deserialize_any(visitor),
            _ => Err(self.needs("a text")),
        }
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        match self.value {
            Value::List(_) => self.deserialize_any(visitor),
            _ => Err(self.needs("a list")),
        }
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        match self.value {
            Value::Table(_) => self.deserialize_any(visitor),
            _ => Err(self.needs("a table")),
        }
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Fault> {
        self.deserialize_map(visitor)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(self, _: &'static str, visitor: V) -> Result<V::Value, Fault> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Fault> {
        let Value::Text(name) = &self.value else { return Err(self.needs("a text")) };
        visitor.visit_enum(name.as_str().into_deserializer()).map_err(|fault: Fault| fault.at(&self.at))
    }

    serde::forward_to_deserialize_any! {
        i8 i16 i32 i128 u128 f32 char str bytes byte_buf unit unit_struct tuple tuple_struct identifier ignored_any
    }
}

/// A table of a file.
struct TableReader<'de>(&'de Table);

impl<'de> Deserializer<'de> for TableReader<'de> {
    type Error = Fault;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        visitor.visit_map(Entries::of(self.0)).map_err(|fault| fault.at(&self.0.at))
    }

    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit unit_struct
        newtype_struct seq tuple tuple_struct map struct enum identifier ignored_any
    }
}

struct Elements<'de>(std::slice::Iter<'de, Node>);

impl<'de> SeqAccess<'de> for Elements<'de> {
    type Error = Fault;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, Fault> {
        self.0.next().map(|node| seed.deserialize(node)).transpose()
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.0.len())
    }
}

struct Entries<'de> {
    rest: btree_map::Iter<'de, String, Entry>,
    /// The one whose key was read.
    open: Option<(&'de str, &'de Entry)>,
}

impl<'de> Entries<'de> {
    fn of(table: &'de Table) -> Self {
        Entries { rest: table.entries(), open: None }
    }
}

impl<'de> MapAccess<'de> for Entries<'de> {
    type Error = Fault;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, Fault> {
        let Some((key, entry)) = self.rest.next() else { return Ok(None) };
        self.open = Some((key, entry));
        let read = seed.deserialize(StrDeserializer::<Fault>::new(key));
        read.map(Some).map_err(|fault| fault.at(&entry.key))
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Fault> {
        let Some((key, entry)) = self.open.take() else { return Err(Fault::custom("a value without its key")) };
        seed.deserialize(&entry.node).map_err(|fault| fault.at(&entry.node.at).beneath(key))
    }
}

/// A table as the variant of an enumeration that is named elsewhere.
struct Variant<'de> {
    kind: &'de str,
    content: &'de Table,
}

impl<'de> Deserializer<'de> for Variant<'de> {
    type Error = Fault;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        visitor.visit_enum(self)
    }

    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit unit_struct
        newtype_struct seq tuple tuple_struct map struct enum identifier ignored_any
    }
}

impl<'de> EnumAccess<'de> for Variant<'de> {
    type Error = Fault;
    type Variant = Self;

    fn variant_seed<V: DeserializeSeed<'de>>(self, seed: V) -> Result<(V::Value, Self), Fault> {
        let kind = seed.deserialize(StrDeserializer::<Fault>::new(self.kind))?;
        Ok((kind, self))
    }
}

impl<'de> VariantAccess<'de> for Variant<'de> {
    type Error = Fault;

    fn unit_variant(self) -> Result<(), Fault> {
        Ok(())
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Result<T::Value, Fault> {
        seed.deserialize(TableReader(self.content))
    }

    fn tuple_variant<V: Visitor<'de>>(self, _: usize, visitor: V) -> Result<V::Value, Fault> {
        TableReader(self.content).deserialize_any(visitor)
    }

    fn struct_variant<V: Visitor<'de>>(self, _: &'static [&'static str], visitor: V) -> Result<V::Value, Fault> {
        TableReader(self.content).deserialize_any(visitor)
    }
}
