//! GitHub's REST API (version 2022-11-28) as the ops here use it, and texts for the person who decides.

const std = @import("std");
const connector = @import("connector");
const Buffer = connector.Buffer;
const Context = connector.Context;
const OpError = connector.OpError;
const Value = connector.Value;
const member = connector.member;
const string = connector.string;

const page_size = 100;

/// GitHub's errors: `{"message", "errors": [{"resource", "field", "code", "message"}]}`.
pub fn problem(gpa: std.mem.Allocator, answer: Value) ?[]const u8 {
    const message = string(answer, "message") orelse return null;
    if (std.mem.eql(u8, message, "Not Found"))
        return "Not Found (it does not exist, or the account may not see it)";
    var out: Buffer = .init(gpa);
    out.appendSlice(message) catch return message;
    const errors = member(answer, "errors") orelse return message;
    if (errors != .array) return message;
    for (errors.array.items) |each| {
        const detail = if (each == .string) each.string else string(each, "message") orelse string(each, "code") orelse continue;
        for ([_][]const u8{ "; ", string(each, "field") orelse "", " ", detail }) |piece|
            out.appendSlice(piece) catch return message;
    }
    return out.items;
}

/// The URL of the repository that the argument `repo` names as `owner/name`.
pub fn repositoryUrl(context: *Context) OpError![]const u8 {
    const given = try context.required("repo");
    const slash = std.mem.indexOfScalar(u8, given, '/') orelse
        return context.badArgument("repo", "must be owner/name");
    for ([_][]const u8{ given[0..slash], given[slash + 1 ..] }) |part| {
        if (part.len == 0 or std.mem.eql(u8, part, ".") or std.mem.eql(u8, part, ".."))
            return context.badArgument("repo", "must be owner/name");
        for (part) |byte| switch (byte) {
            'A'...'Z', 'a'...'z', '0'...'9', '-', '.', '_' => {},
            else => return context.badArgument("repo", "must be owner/name"),
        };
    }
    return concat(context, &.{ "https://api.github.com/repos/", given });
}

/// A repository: its JSON, and the line that says which it is and who can read it.
pub const Repository = struct { json: Value, line: []const u8 };

pub fn repository(context: *Context, url: []const u8) OpError!Repository {
    const found = try context.ask("GET", url, null);
    const archived = if (member(found, "archived")) |value| value == .bool and value.bool else false;
    const private = if (member(found, "private")) |value| value == .bool and value.bool else false;
    const seen = string(found, "visibility") orelse if (private) "private" else "public";
    const name = string(found, "full_name") orelse return unexpected(context, "a repository");
    return .{ .json = found, .line = try concat(context, &.{ name, " (", seen, if (archived) ", archived" else "", ")" }) };
}

/// A required number of an issue, a comment or a release, in digits.
pub fn required(context: *Context, name: []const u8) OpError![]const u8 {
    return try context.integer(name, 1, 1 << 53) orelse context.badArgument(name, "is missing");
}

/// One of a few words, or null where it is not given.
pub fn choice(context: *Context, name: []const u8, words: []const []const u8) OpError!?[]const u8 {
    const given = try context.text(name) orelse return null;
    for (words) |word| {
        if (std.mem.eql(u8, given, word)) return given;
    }
    const all = std.mem.join(context.gpa, ", ", words) catch return error.OutOfMemory;
    return context.badArgument(name, try concat(context, &.{ "must be one of ", all }));
}

/// What is there, or null where GitHub has nothing of that name (404, for a commit 422).
pub fn find(context: *Context, url: []const u8) OpError!?Value {
    const response = try context.send("GET", url, null);
    if (response.status == 404 or response.status == 422) return null;
    return try context.parse(response, .object);
}

/// The items of a list, page by page, at most `most`.
pub fn list(context: *Context, url: []const u8, most: usize) OpError![]const Value {
    var all: std.array_list.Managed(Value) = .init(context.gpa);
    var page: usize = 1;
    while (all.items.len < most) : (page += 1) {
        const paged = std.fmt.allocPrint(context.gpa, "{s}?per_page={d}&page={d}", .{ url, page_size, page }) catch return error.OutOfMemory;
        const found = try context.parse(try context.send("GET", paged, null), .list);
        try all.appendSlice(found.array.items);
        if (found.array.items.len < page_size) break;
    }
    return all.items[0..@min(all.items.len, most)];
}

pub fn unexpected(context: *Context, wanted: []const u8) OpError {
    return context.fail("external_api_error", &.{ "GitHub answered with something that is not ", wanted });
}

pub fn concat(context: *Context, pieces: []const []const u8) OpError![]const u8 {
    return std.mem.concat(context.gpa, u8, pieces) catch error.OutOfMemory;
}

/// The integer member `key`, 0 where there is none.
pub fn count(value: Value, key: []const u8) u64 {
    const found = member(value, key) orelse return 0;
    return switch (found) {
        .number_string => |digits| std.fmt.parseInt(u64, digits, 10) catch 0,
        else => 0,
    };
}

/// The digits of an integer member, empty where there is none.
pub fn digitsOf(value: Value, key: []const u8) []const u8 {
    const found = member(value, key) orelse return "";
    return if (found == .number_string) found.number_string else "";
}

pub fn isTrue(value: Value, key: []const u8) bool {
    const found = member(value, key) orelse return false;
    return found == .bool and found.bool;
}

/// The account name at `key`; GitHub has null for an account that was deleted.
pub fn login(value: Value, key: []const u8) []const u8 {
    return string(member(value, key) orelse .null, "login") orelse "(deleted account)";
}

/// Adds one line: a line break in `text` does not end it.
pub fn appendLine(out: *Buffer, text: []const u8) OpError!void {
    for (text) |byte| switch (byte) {
        '\n' => try out.appendSlice("\\n"),
        '\r' => try out.appendSlice("\\r"),
        else => try out.append(byte),
    };
}

/// Adds `text` indented, so that no line of it can pass for one of ours.
pub fn appendQuoted(out: *Buffer, text: []const u8) OpError!void {
    var lines = std.mem.splitScalar(u8, text, '\n');
    while (lines.next()) |line| {
        try out.appendSlice("    ");
        try out.appendSlice(std.mem.trimEnd(u8, line, "\r"));
        try out.append('\n');
    }
}

/// Adds a number of things, such as `3 files`.
pub fn appendCount(out: *Buffer, number: u64, one: []const u8, many: []const u8) OpError!void {
    var digits: [24]u8 = undefined;
    try out.appendSlice(std.fmt.bufPrint(&digits, "{d} ", .{number}) catch "? ");
    try out.appendSlice(if (number == 1) one else many);
}

/// The commits of a list, each with its author and whole message.
pub fn commitsText(context: *Context, commits: []const Value, all: u64) OpError![]const u8 {
    var out: Buffer = .init(context.gpa);
    for (commits) |each| {
        const commit = member(each, "commit") orelse .null;
        try out.appendSlice(short(string(each, "sha") orelse ""));
        try out.append(' ');
        const author = member(each, "author") orelse .null;
        try appendLine(&out, string(author, "login") orelse
            string(member(commit, "author") orelse .null, "name") orelse "(no author)");
        try out.append('\n');
        try appendQuoted(&out, std.mem.trimEnd(u8, string(commit, "message") orelse "", "\n"));
    }
    if (all > commits.len) {
        try appendCount(&out, all - commits.len, "more commit is", "more commits are");
        try out.appendSlice(" not shown: GitHub does not list them here.\n");
    }
    return if (out.items.len == 0) "none" else std.mem.trimEnd(u8, out.items, "\n");
}

pub fn short(sha: []const u8) []const u8 {
    return sha[0..@min(sha.len, 10)];
}

/// An object that is written member by member.
pub const Record = struct {
    context: *Context,
    object: std.json.ObjectMap = .empty,

    pub fn put(self: *Record, key: []const u8, value: ?Value) OpError!void {
        try self.object.put(self.context.gpa, key, value orelse .null);
    }

    pub fn text(self: *Record, key: []const u8, value: []const u8) OpError!void {
        try self.put(key, .{ .string = value });
    }

    /// The members of `from` that it has, under the same names.
    pub fn copy(self: *Record, from: Value, keys: []const []const u8) OpError!void {
        for (keys) |key| try self.put(key, member(from, key));
    }

    /// The arguments that were given, under the same names.
    pub fn given(self: *Record, names: []const []const u8) OpError!void {
        for (names) |name| {
            if (try self.context.text(name)) |value| try self.text(name, value);
        }
    }

    pub fn done(self: Record) Value {
        return .{ .object = self.object };
    }
};
