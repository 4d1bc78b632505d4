//! The requests that the metadata cache makes.

use super::*;

fn places(requests: &[BlockRequest]) -> Vec<(u64, u32)> {
    requests.iter().map(|request| (request.sector / 8, request.sectors / 8)).collect()
}

#[test]
fn only_pages_not_in_memory_are_fetched() {
    let mut cache = PageCache::default();
    cache.insert(&Piece::whole(5 * 4096, 4096));
    let mut requests = Vec::new();
    // Pages 2 to 8 without the one in memory.
    cache.fetch(&Piece { wanted: 3 * 4096 + 7, start: 2 * 4096, length: 7 * 4096 }, &mut requests);
    assert_eq!(places(&requests), [(2, 3), (6, 3)]);
    // The needed page is in memory, so nothing is fetched, although page 9 is not.
    cache.fetch(&Piece { wanted: 8 * 4096, start: 8 * 4096, length: 8192 }, &mut requests);
    assert_eq!(requests.len(), 2);
    // Adjacent pages of different ranges are different requests.
    cache.fetch(&Piece::whole(9 * 4096, 100), &mut requests);
    cache.fetch(&Piece::whole(10 * 4096, 4096), &mut requests);
    assert_eq!(places(&requests), [(2, 3), (6, 3), (9, 1), (10, 1)]);
}
