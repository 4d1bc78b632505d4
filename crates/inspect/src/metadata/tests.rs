//! What the cache of metadata makes requests of.

use super::*;

fn places(requests: &[BlockRequest]) -> Vec<(u64, u32)> {
    requests.iter().map(|request| (request.sector / 8, request.sectors / 8)).collect()
}

#[test]
fn only_what_is_not_in_memory_is_fetched() {
    let mut cache = PageCache::default();
    cache.insert(&Piece::whole(5 * 4096, 4096));
    let mut requests = Vec::new();
    // Pages 2 to 8 around the one in memory.
    cache.fetch(&Piece { wanted: 3 * 4096 + 7, start: 2 * 4096, length: 7 * 4096 }, &mut requests);
    assert_eq!(places(&requests), [(2, 3), (6, 3)]);
    // The page that is wanted is there: nothing, though page 9 is not.
    cache.fetch(&Piece { wanted: 8 * 4096, start: 8 * 4096, length: 8192 }, &mut requests);
    assert_eq!(requests.len(), 2);
    // Neighbours of different pieces are different requests.
    cache.fetch(&Piece::whole(9 * 4096, 100), &mut requests);
    cache.fetch(&Piece::whole(10 * 4096, 4096), &mut requests);
    assert_eq!(places(&requests), [(2, 3), (6, 3), (9, 1), (10, 1)]);
}
