//! Corners of the sockets API over the preload library, with real packets on loopback.

mod common;

use common::{compiled, free_port, over_library};

fn runs_well(test: &str, way: &str) {
    let folder = tempfile::tempdir().expect("a folder");
    let Some(program) = compiled("corners.c", folder.path()) else {
        println!("SKIPPED {test}: no C compiler");
        return;
    };
    let run = over_library(&program, free_port()).arg(way).output().expect("it runs");
    let said = String::from_utf8_lossy(&run.stdout);
    assert_eq!(said, "as it should be\n", "{way}: {}", run.status);
}

macro_rules! corners {
    ($($test:ident: $way:literal,)*) => {
        $(#[test]
        fn $test() {
            runs_well(stringify!($test), $way);
        })*
    };
}

corners! {
    what_comes_between_a_vain_call_and_a_wait_is_an_edge: "edges",
    room_that_comes_between_a_vain_call_and_a_wait_is_an_edge: "room",
    waiting_for_room_for_a_large_message_takes_no_time_of_the_processor: "idle",
    a_thread_can_be_cancelled_whatever_wakes_it_meanwhile: "cancel",
    select_reads_no_more_of_a_set_than_the_kernel: "select",
    children_end_no_socket_of_their_parent: "children",
    a_program_cannot_close_what_is_not_its_own: "closes",
    an_association_that_is_under_way_has_an_id: "connects",
    the_end_of_an_association_is_nothing_to_read_for_many: "ended",
    a_handler_may_use_the_socket_of_its_thread: "handler",
    a_new_socket_of_the_same_number_is_another: "again",
    a_socket_can_be_made_once_there_may_be_a_thread: "threads",
    several_messages_by_one_call: "several",
    lengths_that_no_option_has: "lengths",
    a_socket_of_many_shows_no_room_where_a_message_was_refused: "room-of-many",
    what_can_be_read_goes_with_an_association_that_is_peeled_off: "peeled",
    a_cancelled_thread_takes_no_message_with_it: "lost",
    a_cancelled_thread_takes_none_of_several_messages_with_it: "lost-of-several",
    a_child_of_a_thread_that_used_a_socket_uses_its_own: "forked",
    what_the_kernel_refuses_ends_no_socket: "refused",
    errors_that_a_peer_reports_are_notified: "reported",
}
