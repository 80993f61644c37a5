//! The module for Gmail itself: its requests ask for the account that a person bound.

const drafts = @import("drafts.zig");
const connector = @import("connector");

pub const service: connector.Service = .{ .name = "Gmail", .credential = "oauth2", .problem = drafts.problem };

export fn _start() void {
    connector.main(drafts.ops);
}
