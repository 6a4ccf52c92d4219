//! Two pages with one SHA-1: the blocks of Stevens, Bursztein, Karpman, Albertini and Markov, "The first collision for
//! full SHA-1" (2017), behind their prefix and in front of zeros.

const PREFIX: &str = "\
    255044462d312e330a25e2e3cfd30a0a0a312030206f626a0a3c3c2f57696474682032203020522f4865696768742033\
    203020522f547970652034203020522f537562747970652035203020522f46696c7465722036203020522f436f6c6f72\
    53706163652037203020522f4c656e6774682038203020522f42697473506572436f6d706f6e656e7420383e3e0a7374\
    7265616d0affd8fffe00245348412d3120697320646561642121212121852fec092339759c39b1a1c63c4c97e1fffe01";
const FIRST: &str = "\
    7f46dc93a6b67e013b029aaa1db2560b45ca67d688c7f84b8c4c791fe02b3df614f86db1690901c56b45c1530afedfb7\
    6038e972722fe7ad728f0e4904e046c230570fe9d41398abe12ef5bc942be33542a4802d98b5d70f2a332ec37fac3514\
    e74ddc0f2cc1a874cd0c78305a21566461309789606bd0bf3f98cda8044629a1";
const SECOND: &str = "\
    7346dc9166b67e118f029ab621b2560ff9ca67cca8c7f85ba84c79030c2b3de218f86db3a90901d5df45c14f26fedfb3\
    dc38e96ac22fe7bd728f0e45bce046d23c570feb141398bb552ef5a0a82be331fea48037b8b5d71f0e332edf93ac3500\
    eb4ddc0decc1a864790c782c76215660dd309791d06bd0af3f98cda4bc4629b1";

/// The pages.
pub(crate) fn pages() -> [Vec<u8>; 2] {
    [FIRST, SECOND].map(|blocks| {
        let digits = [PREFIX, blocks].concat();
        let byte = |at| u8::from_str_radix(&digits[at..at + 2], 16).expect("two digits");
        let mut page: Vec<u8> = (0..digits.len()).step_by(2).map(byte).collect();
        page.resize(super::PAGE, 0);
        page
    })
}
