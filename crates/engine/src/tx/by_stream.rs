//! Something for each stream that was ever used, found without a search.

/// Streams of one page. Users count from 0, so that most associations have one page.
const PAGE: usize = 8;

/// Pages in order, as far as the highest stream used; none where no stream was.
#[derive(Debug)]
pub(super) struct ByStream<T>(Vec<Option<Box<[T; PAGE]>>>);

impl<T> Default for ByStream<T> {
    fn default() -> Self {
        ByStream(Vec::new())
    }
}

impl<T: Default> ByStream<T> {
    /// What stands for `stream`; nothing, or nothing but a default, when it was never used.
    #[inline]
    pub fn get(&self, stream: u16) -> Option<&T> {
        let page = self.0.get(usize::from(stream) / PAGE)?.as_ref()?;
        Some(&page[usize::from(stream) % PAGE])
    }

    #[inline]
    pub fn get_mut(&mut self, stream: u16) -> Option<&mut T> {
        let page = self.0.get_mut(usize::from(stream) / PAGE)?.as_mut()?;
        Some(&mut page[usize::from(stream) % PAGE])
    }

    /// The value of a stream; a default where there was none.
    #[inline]
    pub fn of(&mut self, stream: u16) -> &mut T {
        let page = usize::from(stream) / PAGE;
        if self.0.get(page).is_none_or(Option::is_none) {
            self.add(page);
        }
        &mut self.0[page].get_or_insert_default()[usize::from(stream) % PAGE]
    }

    #[cold]
    fn add(&mut self, page: usize) {
        if self.0.len() <= page {
            self.0.resize_with(page + 1, || None);
        }
        self.0[page].get_or_insert_default();
    }

    /// All in the page of one that was used, by stream.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.0.iter().flatten().flat_map(|page| page.iter())
    }

    pub fn iter_mut(&mut self) -> impl Iterator<Item = (u16, &mut T)> {
        let pages = self.0.iter_mut().enumerate().filter_map(|(i, page)| Some((i * PAGE, page.as_mut()?)));
        pages.flat_map(|(first, page)| page.iter_mut().enumerate().map(move |(i, t)| ((first + i) as u16, t)))
    }
}

#[cfg(test)]
mod tests {
    use super::ByStream;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    proptest! {
        /// Holds what a map would, for the lowest and the highest stream too.
        #[test]
        fn holds_what_a_map_would(uses in proptest::collection::vec((any::<u16>(), any::<bool>(), 1u32..9), 0..60)) {
            let (mut streams, mut model) = (ByStream::<u32>::default(), BTreeMap::new());
            for (stream, low, n) in uses {
                let stream = if low { stream % 20 } else { stream.saturating_mul(2) };
                *streams.of(stream) += n;
                *model.entry(stream).or_insert(0) += n;
                prop_assert_eq!(streams.get(stream), model.get(&stream));
                prop_assert_eq!(streams.get_mut(stream).copied(), model.get(&stream).copied());
            }
            for stream in 0..=u16::MAX {
                prop_assert_eq!(streams.get(stream).copied().unwrap_or(0), model.get(&stream).copied().unwrap_or(0));
            }
            let used: BTreeMap<u16, u32> = streams.iter_mut().map(|(s, n)| (s, *n)).filter(|(_, n)| *n > 0).collect();
            prop_assert_eq!(streams.iter().filter(|n| **n > 0).count(), used.len());
            prop_assert_eq!(used, model);
        }
    }
}
