//! Releases: what one would contain, and making it.

const std = @import("std");
const connector = @import("connector");
const github = @import("github.zig");
const Context = connector.Context;
const OpError = connector.OpError;
const Record = github.Record;
const Value = connector.Value;
const member = connector.member;
const string = connector.string;

/// The release of a tag, or what one would contain: the commit, and the commits since the release before.
/// With `id` the release that has it.
pub fn getRelease(context: *Context) OpError!Value {
    const url = try github.repositoryUrl(context);
    const tag = try context.required("tag");
    const tag_path = try segment(context, "tag", tag);
    const id = try context.integer("id", 1, 1 << 53);
    const place = try github.repository(context, url);
    const target = try context.text("target") orelse string(place.json, "default_branch") orelse "HEAD";
    const release: ?Value = if (id) |digits|
        try context.ask("GET", try github.concat(context, &.{ url, "/releases/", digits }), null)
    else
        try github.find(context, try github.concat(context, &.{ url, "/releases/tags/", tag_path }));
    // per_page counts the commit's files, which are of no interest here.
    const tagged = try github.find(context, try github.concat(context, &.{ url, "/commits/tags/", tag_path, "?per_page=1" }));
    const commit = tagged orelse
        try context.ask("GET", try github.concat(context, &.{ url, "/commits/", try segment(context, "target", target), "?per_page=1" }), null);
    const sha = string(commit, "sha") orelse return github.unexpected(context, "a commit");
    const before = try lastRelease(context, url, tag);

    var out: Record = .{ .context = context };
    try out.text("repository", place.line);
    try out.put("tag_exists", .{ .bool = tagged != null });
    const message = string(member(commit, "commit") orelse .null, "message") orelse "";
    const subject = message[0 .. std.mem.indexOfScalar(u8, message, '\n') orelse message.len];
    try out.text("commit", try github.concat(context, &.{ sha, " ", subject }));
    try out.text("last_release", before orelse "none");
    try out.text("commits", if (before) |last| try since(context, url, last, sha) else "all: this is the first release");
    var about: Record = .{ .context = context };
    if (release) |found| {
        try about.copy(found, &.{ "id", "tag_name", "name", "body", "draft", "prerelease", "html_url" });
        try out.put("release", about.done());
    }
    return out.done();
}

pub fn createRelease(context: *Context) OpError!Value {
    const url = try github.repositoryUrl(context);
    var body: Record = .{ .context = context };
    try body.text("tag_name", try context.required("tag"));
    try body.given(&.{ "name", "body" });
    if (try context.text("target")) |target| try body.text("target_commitish", target);
    for ([_][]const u8{ "draft", "prerelease" }) |name| {
        if (try context.boolean(name)) |value| try body.put(name, .{ .bool = value });
    }
    const made = try context.ask("POST", try github.concat(context, &.{ url, "/releases" }), try connector.json(context.gpa, body.done()));
    var out: Record = .{ .context = context };
    try out.copy(made, &.{ "id", "tag_name", "html_url", "draft" });
    return out.done();
}

/// A branch, tag or commit as one segment of a path.
fn segment(context: *Context, name: []const u8, given: []const u8) OpError![]const u8 {
    if (given.len == 0 or std.mem.eql(u8, given, ".") or std.mem.eql(u8, given, ".."))
        return context.badArgument(name, "is no name of a branch, tag or commit");
    return context.escape(given);
}

/// The tag of the newest release that is neither a draft, a prerelease nor that of `tag`.
fn lastRelease(context: *Context, url: []const u8, tag: []const u8) OpError!?[]const u8 {
    const newest = try context.parse(
        try context.send("GET", try github.concat(context, &.{ url, "/releases?per_page=30" }), null),
        .list,
    );
    for (newest.array.items) |each| {
        if (github.isTrue(each, "draft") or github.isTrue(each, "prerelease")) continue;
        const found = string(each, "tag_name") orelse continue;
        if (!std.mem.eql(u8, found, tag)) return found;
    }
    return null;
}

fn since(context: *Context, url: []const u8, last: []const u8, sha: []const u8) OpError![]const u8 {
    const compared = try github.concat(context, &.{ url, "/compare/", try context.escape(last), "...", sha, "?per_page=100" });
    const answer = try context.ask("GET", compared, null);
    const commits = member(answer, "commits") orelse return github.unexpected(context, "a comparison");
    if (commits != .array) return github.unexpected(context, "a comparison");
    return github.commitsText(context, commits.array.items, github.count(answer, "total_commits"));
}
