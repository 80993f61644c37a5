//! A connector for GitHub: issues, comments, merges, releases. Its requests ask for the token that a
//! person bound.

const connector = @import("connector");
const github = @import("github.zig");
const issues = @import("issues.zig");
const pulls = @import("pulls.zig");
const releases = @import("releases.zig");

pub const service: connector.Service = .{
    .name = "GitHub",
    .credential = "api_key",
    .accept = "application/vnd.github+json",
    .headers = &.{.{ "X-GitHub-Api-Version", "2022-11-28" }},
    .problem = github.problem,
};

export fn _start() void {
    connector.main(.{
        .{ "list_issues", issues.listIssues },
        .{ "get_issue", issues.getIssue },
        .{ "get_comment", issues.getComment },
        .{ "get_repository", issues.getRepository },
        .{ "create_issue", issues.createIssue },
        .{ "update_issue", issues.updateIssue },
        .{ "add_comment", issues.addComment },
        .{ "update_comment", issues.updateComment },
        .{ "get_pull", pulls.getPull },
        .{ "merge_pull", pulls.mergePull },
        .{ "get_release", releases.getRelease },
        .{ "create_release", releases.createRelease },
    });
}
