//! Quicksort as it stands in textbooks: Hoare's partition round the median of three, insertion sort
//! below sixteen. A rival, kept as plain as the paper's own ("a default C implementation").

const FEW: usize = 16;

/// Sorts `items` by `less`.
pub(super) fn quicksort<T: Copy>(items: &mut [T], less: &impl Fn(&T, &T) -> bool) {
    let mut rest = items;
    while rest.len() > FEW {
        let cut = partition(rest, less);
        let (low, high) = rest.split_at_mut(cut);
        // The smaller part first: the stack stays logarithmic.
        let (small, large) = if low.len() < high.len() { (low, high) } else { (high, low) };
        quicksort(small, less);
        rest = large;
    }
    for i in 1..rest.len() {
        let item = rest[i];
        let mut at = i;
        while at > 0 && less(&item, &rest[at - 1]) {
            rest[at] = rest[at - 1];
            at -= 1;
        }
        rest[at] = item;
    }
}

/// Where to cut: nothing before is above the pivot, nothing from there on is below. Neither part is
/// empty.
fn partition<T: Copy>(items: &mut [T], less: &impl Fn(&T, &T) -> bool) -> usize {
    let (mid, last) = (items.len() / 2, items.len() - 1);
    // The least of three first and the greatest last stop the scans below.
    if less(&items[mid], &items[0]) {
        items.swap(mid, 0);
    }
    if less(&items[last], &items[mid]) {
        items.swap(last, mid);
        if less(&items[mid], &items[0]) {
            items.swap(mid, 0);
        }
    }
    let pivot = items[mid];
    let (mut low, mut high) = (1, last - 1);
    loop {
        while less(&items[low], &pivot) {
            low += 1;
        }
        while less(&pivot, &items[high]) {
            high -= 1;
        }
        if low >= high {
            return low;
        }
        items.swap(low, high);
        low += 1;
        high -= 1;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::quicksort;

    #[test]
    fn patterns_of_any_length() {
        for n in 0..100u32 {
            for pattern in [|i: u32| i, |i| 1000 - i, |_| 7, |i| i % 3, |i| i * 7919 % 101] {
                let mut items: Vec<u32> = (0..n).map(pattern).collect();
                let mut expected = items.clone();
                expected.sort_unstable();
                quicksort(&mut items, &|a, b| a < b);
                assert_eq!(items, expected);
            }
        }
    }

    proptest! {
        #[test]
        fn agrees_with_the_standard_sort(mut items: Vec<u8>) {
            let mut expected = items.clone();
            expected.sort_unstable();
            quicksort(&mut items, &|a, b| a < b);
            prop_assert_eq!(items, expected);
        }
    }
}
